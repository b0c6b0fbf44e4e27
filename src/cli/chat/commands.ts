import { hasVisible } from '../../kernel/index.ts';
/** Parses a line that was typed in a chat. Pure. */
export type ChatLine =
  | { readonly kind: 'message'; readonly text: string }
  | { readonly kind: 'nothing' }
  | { readonly kind: 'help' | 'agents' | 'quit' }
  | { readonly kind: 'phase'; readonly phase: string }
  | { readonly kind: 'mode'; readonly mode: string; readonly agent?: string }
  | { readonly kind: 'explain'; readonly agent: string }
  | { readonly kind: 'wrong'; readonly say: string };

export const CHAT_HELP = `/agents              list the agents
/phase PHASE         enter a phase
/mode MODE [AGENT]   enter a mode: chat, agent or run
/explain AGENT       print the request that this agent's model would get now
/quit                leave (also Ctrl-D)
@slug in a message addresses an agent. Ctrl-C aborts running turns; a second Ctrl-C leaves.
To send a message that begins with a slash, type two slashes.
Pasted lines are one message: Enter sends it.`;

export function parseChatLine(line: string): ChatLine {
  const text = line.trim();
  if (!hasVisible(text)) return { kind: 'nothing' };
  if (text.includes('\n')) return { kind: 'message', text }; // pasted text is never a command
  if (text.startsWith('//')) return { kind: 'message', text: text.slice(1) };
  if (!text.startsWith('/')) return { kind: 'message', text };
  const [command = '', first, second] = text.slice(1).split(/\s+/);
  switch (command) {
    case 'help':
    case 'agents':
    case 'quit':
      return { kind: command };
    case 'exit':
      return { kind: 'quit' };
    case 'phase':
      return first
        ? { kind: 'phase', phase: first }
        : { kind: 'wrong', say: '/phase needs the name of a phase' };
    case 'mode':
      if (!first) return { kind: 'wrong', say: '/mode needs chat, agent or run' };
      return { kind: 'mode', mode: first, ...(second ? { agent: second } : {}) };
    case 'explain':
      return first
        ? { kind: 'explain', agent: first }
        : { kind: 'wrong', say: '/explain needs the slug of an agent' };
    default:
      return { kind: 'wrong', say: `unknown command /${command}: /help lists all commands` };
  }
}
