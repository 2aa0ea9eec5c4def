"""Slurm itself on the hosts of hosts.py: its controller on the first, its daemon on each, and munge, which they trust."""

import os
import shutil
import subprocess
import time

PROGRAMS = ("munged", "slurmctld", "slurmd", "srun")
CORES = 8  # that Slurm is told each host has
PATIENCE_SECONDS = 30


def missing():
    """Those of its programs that this machine does not have."""
    return [program for program in PROGRAMS if shutil.which(program) is None]


class Slurm:
    """Runs from here until the hosts are closed. Its files lie in `folder`; `environment` is what its users need."""

    def __init__(self, hosts, folder):
        self.hosts, self.folder = hosts, folder
        self.environment = {"SLURM_CONF": self.path("slurm.conf")}
        os.environ.update(self.environment)
        self.log = open(self.path("log"), "w", encoding="utf-8")
        names = [hosts.host_name(host) for host in range(hosts.count)]
        with open(self.path("slurm.conf"), "w", encoding="utf-8") as file:
            file.write(self.configuration(names))
        with open(self.path("key"), "wb") as file:
            os.fchmod(file.fileno(), 0o600)
            file.write(os.urandom(128))
        os.chmod(folder, 0o755)  # munge lets nobody but its user write above its socket
        own = [f"--{what}-file={self.path(what)}" for what in ("key", "pid", "log", "seed")]
        own[2] = f"--log-file={self.path('munge.log')}"
        self.munge = subprocess.Popen(
            ["munged", "--foreground", "--force", f"--socket={self.path('munge')}"] + own, stdout=self.log, stderr=self.log
        )
        self.wait_for(lambda: os.path.exists(self.path("munge")), "munge has no socket")
        self.daemon(0, "slurmctld", "-D", "-i")
        for host, name in enumerate(names):
            os.mkdir(self.path(f"spool.{name}"))
            self.daemon(host, "slurmd", "-D", "-N", name)
        self.wait_for(self.all_idle, "its hosts are not ready")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.munge.kill()
        self.munge.wait()
        self.log.close()

    def path(self, name):
        return os.path.join(self.folder, name)

    def configuration(self, names):
        lines = [
            "ClusterName=test",
            f"SlurmctldHost={names[0]}",
            "SlurmUser=root",
            "AuthType=auth/munge",
            "CredType=cred/munge",
            f"AuthInfo=socket={self.path('munge')}",
            f"SlurmctldPidFile={self.path('controller.pid')}",
            f"SlurmdPidFile={self.path('daemon.%n.pid')}",
            f"SlurmdSpoolDir={self.path('spool.%n')}",
            f"StateSaveLocation={self.path('')}",
            f"SlurmctldLogFile={self.path('controller.log')}",
            f"SlurmdLogFile={self.path('daemon.%n.log')}",
            "ProctrackType=proctrack/pgid",
            "TaskPlugin=task/none",
            "MpiDefault=none",
            "JobAcctGatherType=jobacct_gather/none",
            "SelectType=select/cons_tres",
            "SelectTypeParameters=CR_CPU",
            "SlurmdParameters=config_overrides",
        ]
        for host, name in enumerate(names):
            lines.append(
                f"NodeName={name} NodeAddr={self.hosts.address(host)} CPUs={CORES} Boards=1 SocketsPerBoard=1 "
                f"CoresPerSocket={CORES} ThreadsPerCore=1 State=UNKNOWN"
            )
        lines.append(f"PartitionName=all Nodes={','.join(names)} Default=YES State=UP")
        return "\n".join(lines) + "\n"

    def daemon(self, host, *words):
        self.hosts.start(host, words, stdout=self.log, stderr=self.log)

    def all_idle(self):
        said = subprocess.run(
            self.hosts.inside(0, ["sinfo", "--noheader", "--format=%D %t"]), capture_output=True, text=True, check=False
        )
        return said.stdout.split() == [str(self.hosts.count), "idle"]

    def wait_for(self, what, otherwise):
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not what():
            if time.monotonic() > deadline:
                logs = [self.path(name) for name in sorted(os.listdir(self.folder)) if name.endswith("log")]
                ends = [f"{log}:\n{open(log, encoding='utf-8', errors='replace').read()[-1000:]}" for log in logs]
                raise RuntimeError(f"Slurm did not start: {otherwise}\n" + "\n".join(ends))
            time.sleep(0.1)
