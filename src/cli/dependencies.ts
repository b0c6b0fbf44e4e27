import type { ClientOptions, ParleyClient } from '../client/index.ts';
import type { Config, LoadOptions } from '../config/index.ts';

/** The other modules that commands use. Tests replace them. */
export interface CliDependencies {
  connect(options: ClientOptions): Promise<ParleyClient>;
  loadConfig(options: LoadOptions): Promise<Config>;
  /** Loaded on demand, because most commands only connect to a daemon. */
  daemon(): Promise<DaemonModule>;
}

export type DaemonModule = typeof import('../daemon/index.ts');

export function realDependencies(): CliDependencies {
  return {
    connect: async (options) => (await import('../client/index.ts')).connect(options),
    loadConfig: async (options) => (await import('../config/index.ts')).loadConfig(options),
    daemon: () => import('../daemon/index.ts'),
  };
}
