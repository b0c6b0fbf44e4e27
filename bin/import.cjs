// `import()` for the program: Node 20 has none in compiled code (bin/load.js).
module.exports = (url) => import(url);
