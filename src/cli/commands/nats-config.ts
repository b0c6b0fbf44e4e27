import { resolve } from 'node:path';
import type { Command } from 'commander';
import type { Act } from '../act.ts';

export function addNatsConfig(program: Command, act: Act): void {
  program
    .command('nats-config')
    .description('print the configuration of a nats-server: accounts, users, and what each may do')
    .argument('<file>', 'tenants and their users, as YAML (docs/security.md)')
    .option('--nsc', 'print the commands of nsc instead, for a server that knows its users by JWTs')
    .action((file: string, { nsc = false }: { nsc?: boolean }, command: Command) =>
      act(command, async (context) => {
        const { natsConfig } = await context.rooms.daemon();
        const config = await natsConfig(resolve(context.io.workingDirectory, file), nsc);
        if (context.json) context.value({ config });
        else context.line(config);
        return 0;
      }),
    );
}
