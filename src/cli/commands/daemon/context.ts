import type { Command } from 'commander';
import { ParleyError, urlWithoutSecrets } from '../../../client/index.ts';
import type { Act, Context } from '../../context.ts';
import { contextName, contextNamed, contextOf, readContexts, writeContexts } from '../../options/contexts.ts';
import { renderTable } from '../../render/table.ts';

export function addContext(program: Command, act: Act): void {
  const group = program
    .command('context')
    .description('name servers, and select one (as in the `nats` command)');
  const action =
    (work: (context: Context, name: string) => Promise<void>) =>
    (name: string, _options: object, command: Command) =>
      act(command, async (context) => {
        await work(context, contextName(name));
        return 0;
      });
  group
    .command('add')
    .description(
      'save --nats, --prefix and the files with its credentials under a name; replaces an older one',
    )
    .argument('<name>', 'its name')
    .action(action(add));
  group
    .command('ls')
    .description('list them; * marks the selected one')
    .action((_options: object, command: Command) => act(command, list));
  group
    .command('use')
    .description('select the one that commands use when nothing else names a daemon; `none` selects none')
    .argument('<name>', 'its name')
    .action(action(use));
  group.command('rm').description('remove one').argument('<name>', 'its name').action(action(remove));
}

async function add(context: Context, name: string): Promise<void> {
  const saved = contextOf(context.options, context.io);
  if (name === 'none')
    throw new ParleyError('USAGE', 'a context cannot be named none', { hint: 'choose another name' });
  if (saved.nats === undefined || saved.nats !== urlWithoutSecrets(saved.nats))
    throw new ParleyError('USAGE', 'a context needs a server, without a password in its URL', {
      hint: '`parley context add NAME --nats URL --nats-user USER --nats-password-file FILE`',
    });
  const known = await readContexts(context.io);
  await writeContexts(context.io, { ...known, contexts: { ...known.contexts, [name]: saved } });
  if (context.json) context.value({ name, ...saved });
  else {
    context.line(`context ${name} is saved`);
    for (const [key, value] of Object.entries(saved)) context.line(`  ${key} ${value}`);
  }
}

async function list(context: Context): Promise<number> {
  const { selected, contexts } = await readContexts(context.io);
  const rows = Object.entries(contexts);
  if (context.json)
    for (const [name, saved] of rows) context.value({ name, selected: name === selected, ...saved });
  else if (rows.length === 0) context.note('no contexts yet: `parley context add NAME --nats URL`');
  else {
    const cells = rows.map(([name, { nats = '-', natsUser = '-', prefix = '-' }]) => [
      `${name}${name === selected ? '*' : ''}`,
      nats,
      natsUser,
      prefix,
    ]);
    context.line(renderTable(['NAME', 'SERVER', 'USER', 'PREFIX'], cells, context.palette.dim));
  }
  return 0;
}

async function use(context: Context, name: string): Promise<void> {
  const known = await readContexts(context.io);
  if (name !== 'none') contextNamed(known, name);
  await writeContexts(context.io, { ...known, selected: name === 'none' ? null : name });
  context.note(name === 'none' ? 'no context is selected' : `commands use the context ${name}`);
}

async function remove(context: Context, name: string): Promise<void> {
  const known = await readContexts(context.io);
  contextNamed(known, name);
  const { [name]: _, ...contexts } = known.contexts;
  await writeContexts(context.io, { selected: known.selected === name ? null : known.selected, contexts });
  context.note(`context ${name} is removed`);
}
