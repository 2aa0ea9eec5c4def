# cmake -DOUTPUT=file.cpp "-DTEXTS=name;file;name;file;..." -P write_texts.cmake: what embed_texts runs at build time.
set(delimiter "muonwalk_text")
set(source "namespace muonwalk::sim::page_texts {\n")
while(TEXTS)
  list(POP_FRONT TEXTS name file)
  file(READ ${file} text)
  string(FIND "${text}" ")${delimiter}\"" at)
  if(NOT at EQUAL -1)
    message(FATAL_ERROR "${file} holds )${delimiter}\", which ends a literal: "
      "take another delimiter in write_texts.cmake.")
  endif()
  string(APPEND source "extern const char* const ${name};\n"
    "const char* const ${name} = R\"${delimiter}(${text})${delimiter}\";\n")
endwhile()
string(APPEND source "}\n")
file(WRITE ${OUTPUT} "${source}")
