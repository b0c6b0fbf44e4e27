import { MODES, type ParleyClient, ParleyError } from '../../client/index.ts';
import type { Actor } from '../options/publisher.ts';
import { renderAgents } from '../render/agents.ts';
import { renderState } from '../render/conversation.ts';
import type { Palette } from '../render/palette.ts';
import { renderView } from '../render/view.ts';
import { CHAT_HELP, type ChatLine } from './commands.ts';

interface Chat {
  readonly client: ParleyClient;
  readonly conversation: string;
  readonly actor: Actor;
  readonly palette: Palette;
  readonly print: (text: string) => void;
}

/** Executes a `/` command. */
export async function execute(
  line: Exclude<ChatLine, { kind: 'message' | 'quit' | 'decide' | 'answer' | 'run' }>,
  chat: Chat,
): Promise<void> {
  const { client, conversation, actor, palette, print } = chat;
  switch (line.kind) {
    case 'nothing':
      return;
    case 'help':
      return print(`${CHAT_HELP}\n`);
    case 'agents':
      return print(`${renderAgents((await client.request('agents', {})).agents, palette)}\n`);
    case 'phase':
      return print(
        `${renderState(await client.request('phase', { conversation, phase: line.phase, ...actor }))}\n`,
      );
    case 'mode':
      return print(`${renderState(await enterMode(chat, line))}\n`);
    case 'explain':
      return print(
        `${renderView(await client.request('view', { conversation, agent: line.agent }), palette)}\n`,
      );
    case 'wrong':
      throw new ParleyError('USAGE', line.say);
  }
}

function enterMode({ client, conversation, actor }: Chat, line: ChatLine & { kind: 'mode' }) {
  const mode = MODES.find((one) => one === line.mode);
  if (mode === undefined) {
    throw new ParleyError('USAGE', `there is no mode ${line.mode}`, { hint: 'chat, agent or run' });
  }
  return client.request('mode', { conversation, mode, agent: line.agent, ...actor });
}
