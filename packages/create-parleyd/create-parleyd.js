#!/usr/bin/env node
// `npm create parleyd my-team` is `parley init my-team`.
process.argv.splice(2, 0, 'init');
await import('parleyd/cli');
