export * from './entry.ts';
export * from './phases.ts';
export * from './roster.ts';
