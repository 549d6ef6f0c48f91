#!/usr/bin/env node
/** `band-acp` is `band-gateway acp`. */
process.argv.splice(2, 0, 'acp');
await import('./bin.js');
export {};
