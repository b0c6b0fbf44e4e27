/** What the tools need of a logger; pino fits. */
export interface ToolLog {
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

export const SILENT: ToolLog = { warn: () => {}, error: () => {} };
