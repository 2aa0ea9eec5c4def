// Numbers, shapes and names as sentences of the player have them.
(function (mw) {
  "use strict";

  const grouped = (number) => String(number).replace(/\B(?=(\d{3})+$)/g, ",");
  const count = (number, thing) => `${grouped(number)} ${thing}${number === 1 ? "" : "s"}`;
  const bytesText = (bytes) => `${grouped(bytes)} B`;
  const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);
  const joined = (words) =>
    words.length < 2 ? words.join("") : `${words.slice(0, -1).join(", ")} and ${words[words.length - 1]}`;

  const shapeText = (block) =>
    block.flat ? count(block.cols * block.rows, "element") : `${block.rows} × ${block.cols}`;
  const rangeText = (block) =>
    block.end - block.begin === 1 ? grouped(block.begin) : `${grouped(block.begin)}–${grouped(block.end - 1)}`;
  const nameText = (block) => (block.unit ? `${block.name}[${block.unit} ${rangeText(block)}]` : block.name);
  const blockText = (block) => `${nameText(block)}, ${shapeText(block)}, ${bytesText(block.bytes)}`;

  // Four significant digits and an exponent. What lies in the middle goes to the even digit, as in C; toExponential
  // alone rounds it up.
  function fourDigits(value) {
    const exact = value.toExponential(60);
    const isMiddle = /^-?\d\.\d\d[02468]50*e/.test(exact);
    return isMiddle ? exact.replace(/50*e/, "e") : value.toExponential(3);
  }

  // A number as the program prints it: four significant digits, as printf's %.4g writes them.
  function numberText(value) {
    if (typeof value !== "number") return String(value);  // "nan", "inf", "-inf"
    if (value === 0) return Object.is(value, -0) ? "-0" : "0";
    const [digits, exponent] = fourDigits(Math.fround(value)).split("e");
    if (exponent >= -4 && exponent < 4) return String(Number(`${digits}e${exponent}`));
    return `${Number(digits)}e${exponent[0]}${exponent.slice(1).padStart(2, "0")}`;
  }

  Object.assign(mw, { grouped, count, bytesText, capital, joined, shapeText, rangeText, nameText, blockText, numberText });
})((window.muonwalkPlayer = window.muonwalkPlayer || {}));
