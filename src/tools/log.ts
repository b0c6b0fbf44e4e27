/** The logger that tools need; pino implements it. */
export interface ToolLog {
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

export const SILENT: ToolLog = { warn: () => {}, error: () => {} };
