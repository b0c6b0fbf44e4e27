import { hasVisible } from '../../kernel/index.ts';
/** Parses a line that was typed in a chat. Pure. */
export type ChatLine =
  | { readonly kind: 'message'; readonly text: string }
  | { readonly kind: 'nothing' }
  | { readonly kind: 'help' | 'agents' }
  | { readonly kind: 'quit' }
  | { readonly kind: 'phase'; readonly phase: string }
  | { readonly kind: 'mode'; readonly mode: string; readonly agent?: string }
  | { readonly kind: 'explain'; readonly agent: string }
  | { readonly kind: 'decide'; readonly answer: 'approve' | 'deny'; readonly words: readonly string[] }
  | { readonly kind: 'answer'; readonly text: string }
  | { readonly kind: 'file'; readonly path: string }
  | { readonly kind: 'run'; readonly workflow: string; readonly text: string }
  | { readonly kind: 'wrong'; readonly say: string };

export const CHAT_HELP = `/agents              list the agents
/phase PHASE         enter a phase
/mode MODE [AGENT]   enter a mode: chat, agent or run
/explain AGENT       print the request that this agent's model would get now
/file PATH           send this file with the next message
/run WORKFLOW TEXT   start a workflow with this input
/approve [ID]        approve the pending call, or the one with this id
/deny [ID] [REASON]  deny it
/answer TEXT         answer the question of an agent
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
  const [command = '', first, second, ...rest] = text.slice(1).split(/\s+/);
  switch (command) {
    case 'help':
    case 'agents':
    case 'quit':
      return { kind: command };
    case 'exit':
      return { kind: 'quit' };
    case 'phase':
      return first ? { kind: 'phase', phase: first } : wrong('/phase needs the name of a phase');
    case 'mode':
      if (!first) return wrong('/mode needs chat, agent or run');
      return { kind: 'mode', mode: first, ...(second ? { agent: second } : {}) };
    case 'explain':
      return first ? { kind: 'explain', agent: first } : wrong('/explain needs the slug of an agent');
    case 'approve':
    case 'deny':
      return { kind: 'decide', answer: command, words: [first, second, ...rest].filter(isWord) };
    case 'answer':
      if (!first) return wrong('/answer needs a text');
      return { kind: 'answer', text: text.replace(/^\S+\s+/, '') };
    case 'file':
      if (!first) return wrong('/file needs the path of a file');
      return { kind: 'file', path: text.replace(/^\S+\s+/, '') };
    case 'run':
      if (!first || !second) return wrong('/run needs a workflow and its input');
      return { kind: 'run', workflow: first, text: text.replace(/^\S+\s+\S+\s+/, '') };
    default:
      return wrong(`unknown command /${command}: /help lists all commands`);
  }
}

const wrong = (say: string): ChatLine => ({ kind: 'wrong', say });

function isWord(word: string | undefined): word is string {
  return word !== undefined;
}

const LIKE_AN_ANSWER =
  /^(y|yes|yep|yeah|ok|okay|sure|approved?|allow(ed)?|go( ahead| on)?|do it|run it|n|no|nope|den(y|ied)|refused?|reject(ed)?|don't|stop)[.!]*$/i;

/** Whether a text may be meant as the answer to an approval. */
export function looksLikeAnAnswer(text: string): boolean {
  return LIKE_AN_ANSWER.test(text.trim());
}
