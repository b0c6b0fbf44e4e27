/** Where the managed server reports. Fields never hold a secret. */
export type ManagedLog = (level: 'info' | 'warn', message: string, fields?: object) => void;
