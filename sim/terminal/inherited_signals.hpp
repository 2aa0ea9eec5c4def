#pragma once

namespace muonwalk::sim {

/// Takes back what the program that started this one has done to signals and a new program inherits: no signal is
/// blocked from here on, and SIGCHLD, SIGPIPE and SIGTERM do what they do by default. To be called first of all in
/// main, before there are threads or handlers; a second call does nothing.
///
/// What stays ignored is what somebody wanted to be ignored: SIGHUP, by nohup, and SIGINT and SIGQUIT, by a shell that
/// started the program in the background (`lesson &` in a script), so that Ctrl-C ends what runs in the foreground and
/// not this. SIGTERM still ends it.
void reset_inherited_signals();

}  // namespace muonwalk::sim
