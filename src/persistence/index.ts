export * from './port.ts';
export { isBeyond, isCovered } from './rules.ts';
