/** The logger that the bus needs; pino fits. */
export interface BusLog {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}
