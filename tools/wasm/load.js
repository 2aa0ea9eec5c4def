// Part of muonwalk.js, before what Emscripten writes: how the program gets from the text of this file into memory. Emscripten would
// fetch() the text as an address of data, which takes the browser three times as long as to decode it.
Module['instantiateWasm'] = (imports, receive) => {
  const text = wasmBinaryFile.slice(dataURIPrefix.length);
  const bytes = Uint8Array.fromBase64 ? Uint8Array.fromBase64(text) : intArrayFromBase64(text);
  WebAssembly.instantiate(bytes, imports).then(({instance, module}) => receive(instance, module), abort);
  return {};  // later
};
