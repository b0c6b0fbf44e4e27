import { resolve } from 'node:path';
import type { Command } from 'commander';
import type { Act } from '../../context.ts';

export function addNatsConfig(program: Command, act: Act): void {
  program
    .command('nats-config')
    .description('print the configuration of a nats-server: accounts, users and their permissions')
    .argument('<file>', 'tenants and their users, as YAML (docs/guides/security.md)')
    .option('--nsc', 'print nsc commands instead, for a server with JWT users')
    .action((file: string, { nsc = false }: { nsc?: boolean }, command: Command) =>
      act(command, async (context) => {
        const { natsConfig } = await context.dependencies.daemon();
        const config = await natsConfig(resolve(context.io.workingDirectory, file), nsc);
        if (context.json) context.value({ config });
        else context.line(config);
        return 0;
      }),
    );
}
