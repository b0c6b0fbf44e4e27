/** One thing that was looked at. `fix`: what to type or to change. */
export interface Check {
  readonly name: string;
  readonly status: 'ok' | 'warn' | 'fail';
  readonly message: string;
  readonly fix?: string;
}
