export * from './port.ts';
export { isCovered } from './rules.ts';
