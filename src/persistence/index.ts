export * from './jsonl/index.ts';
export * from './memory/index.ts';
export * from './port.ts';
