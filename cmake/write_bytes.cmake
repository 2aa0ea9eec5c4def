# cmake -DIMAGE=file -DOUTPUT=file.cpp -P write_bytes.cmake: the bytes of a file as the array muonwalk_kernels_image,
# aligned as the driver wants what it loads.
file(READ ${IMAGE} bytes HEX)
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
string(REGEX REPLACE "((0x..,)(0x..,)(0x..,)(0x..,)(0x..,)(0x..,)(0x..,)(0x..,))" "\\1\n" bytes "${bytes}")
file(WRITE ${OUTPUT} "extern \"C\" {\nextern const unsigned char muonwalk_kernels_image[];\n"
  "alignas(64) const unsigned char muonwalk_kernels_image[] = {\n${bytes}};\n}\n")
