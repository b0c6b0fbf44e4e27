import type { ContentBlock, PromptCapabilities } from '@agentclientprotocol/sdk';
import type { AgentAnswer, AgentTurn, OfferedTool } from '../../client/index.ts';
import {
  AWAY_MARKER,
  escapeMarkers,
  type FilePart,
  fileLine,
  PERMITS,
  type SentPrompt,
  unseenFileLine,
} from '../../conversation/index.ts';
import { messageOf, sha256Of } from '../../kernel/index.ts';
import { blockRefusal, fileBlock, isText } from '../blocks.ts';

/** A turn that a coding agent is offered: what the agent needs of it, and the prompt. */
export interface OfferedTurn
  extends Pick<
    AgentTurn,
    'conversation' | 'turnId' | 'sessionId' | 'missed' | 'signal' | 'write' | 'think' | 'showCall'
  > {
  readonly messages: readonly TurnMessage[];
  readonly tools: readonly TurnTool[];
  /** Messages that arrived while tools ran; grows. */
  readonly news: readonly TurnMessage[];
  callTools(
    calls: readonly ToolRequest[],
    content?: string,
    soFar?: AcpProgress,
  ): Promise<readonly { readonly content: string }[]>;
  /** Takes what says, when the turn is stopped, what was not reported before. Absent: nothing is asked then. */
  reports?(soFar: () => AcpProgress): void;
}

export interface TurnMessage {
  readonly role: string;
  readonly content: string | null;
  /** Each has its line in `content`. */
  readonly files?: readonly FilePart[];
  readonly tool_calls?: readonly { readonly id: string; readonly function: { readonly name: string } }[];
  readonly tool_call_id?: string;
}

export type TurnTool = Pick<OfferedTool, 'function'>;

export interface ToolRequest {
  readonly name: string;
  readonly arguments: Readonly<Record<string, unknown>>;
}

/** What was not reported before a call. */
export type AcpProgress = Partial<Pick<AcpAnswer, 'sessionId' | 'reported' | 'prompt'>>;

/** Its prompt is the newest one of the turn, unless a call before has it. */
export type AcpAnswer = Omit<AgentAnswer, 'model'> & { readonly sessionId: string };

/** Where the files of conversations are. Both reject with what happened. */
export interface FileStore {
  read(conversation: string, sha256: string): Promise<AsyncIterable<Uint8Array>>;
  keep(
    conversation: string,
    bytes: Uint8Array,
    about: { name?: string; mediaType?: string },
  ): Promise<FilePart>;
}

/**
 * What a session is told of a turn: a pure function of the offer.
 *
 * ACP-PROMPT-1 A session that continues keeps its own history, so it is told what it missed (MISSED-1, MISSED-2).
 * ACP-PROMPT-2 A new session is told the whole view, its own earlier messages included, in the order of the view.
 * ACP-PROMPT-3 The away block repeats messages that come before it, so it is left out.
 * ACP-PROMPT-4 A result is told only if the program that waited for it has ended: whether what a permission allowed has run
 *              is not known then (L12), unless the program went on.
 * ACP-PROMPT-5 A file that the program takes follows its text, the newest ones up to `MOST_FILES` and `MOST_BYTES`. The line of
 *              another one says why it does not, and which tool reads it.
 * ACP-PROMPT-7 A prompt has no roles, so lines of results and of the agent's own messages that look like markers are escaped, too (L17).
 * ACP-PROMPT-6 What is sent, and what `explain` shows, is `promptFor` of the same request. The answer has its hash (`prompt`).
 */
export function promptOf(
  { messages, missed, tools = [] }: Request,
  isNew: boolean,
  can: PromptCapabilities = {},
): Told[] {
  const places = isNew || missed === undefined ? messages.map((_, place) => place) : missed;
  const shown = new ShownFiles(
    can,
    tools.some((tool) => tool.function.name === READER),
  );
  const told = places.toReversed().map((place) => {
    const text = textOf(messages, place);
    return text === '' ? [] : shown.withFiles(text, messages[place]?.files);
  });
  const parts = told.reverse().flat();
  return parts.length > 0 ? parts : [{ type: 'text', text: CONTINUE }];
}

/** What a prompt takes from an offer. */
interface Request extends Pick<OfferedTurn, 'messages' | 'missed'> {
  readonly tools?: readonly { readonly function: { readonly name: string } }[];
}

/** A text, or a file whose content follows it. */
type Told = { readonly type: 'text'; readonly text: string } | FilePart;

interface Prompt {
  readonly blocks: ContentBlock[];
  /** The bytes whose hash the log has. */
  readonly json: string;
  readonly sent: SentPrompt;
}

/** ACP-PROMPT-6. `read` rejects if the file cannot be read: it is named then. */
export async function promptFor(
  request: Request,
  isNew: boolean,
  takes: readonly string[],
  read: (file: FilePart) => Promise<AsyncIterable<Uint8Array>>,
): Promise<Prompt> {
  const can = Object.fromEntries(takes.map((kind) => [kind, true]));
  const blocks = await Promise.all(promptOf(request, isNew, can).map((part) => blockOf(part, read)));
  const json = JSON.stringify(blocks);
  return { blocks, json, sent: { isNew, takes: [...takes], hash: sha256Of(json) } };
}

/** The kinds of files that a program takes. */
export const takenBy = (can: PromptCapabilities = {}) =>
  (['image', 'audio', 'embeddedContext'] as const).filter((kind) => can[kind]);

async function blockOf(
  part: Told,
  read: (file: FilePart) => Promise<AsyncIterable<Uint8Array>>,
): Promise<ContentBlock> {
  if (part.type === 'text') return part;
  try {
    return await fileBlock(part, await read(part));
  } catch (error) {
    const why = `not shown: it cannot be read: ${messageOf(error)}`;
    return { type: 'text', text: unseenFileLine(part, why) };
  }
}

/** A prompt has no more of them: it is one line of JSON. */
const MOST_FILES = 20;
const MOST_BYTES = 20_000_000;
/** The tool that reads the texts of a conversation: its results over MCP are text. */
const READER = 'fs_read';

/** ACP-PROMPT-5. The newest message first. */
class ShownFiles {
  readonly #can: PromptCapabilities;
  readonly #isReadable: boolean;
  #files = 0;
  #bytes = 0;

  constructor(can: PromptCapabilities, isReadable: boolean) {
    this.#can = can;
    this.#isReadable = isReadable;
  }

  withFiles(text: string, files: readonly FilePart[] = []): Told[] {
    const shown = files.filter((file) => {
      const why = blockRefusal(file, this.#can) ?? this.#overflow(file);
      const next = this.#isReadable && isText(file.mediaType) ? `; the tool ${READER} reads it` : '';
      if (why !== null)
        text = text.replace(fileLine(file), () => unseenFileLine(file, `not shown: ${why}${next}`));
      return why === null;
    });
    return [{ type: 'text', text }, ...shown];
  }

  #overflow({ size }: FilePart): string | null {
    if (this.#files >= MOST_FILES || this.#bytes + size > MOST_BYTES) return 'too much for one prompt';
    this.#files += 1;
    this.#bytes += size;
    return null;
  }
}

const CONTINUE =
  '=== CONTINUE ===\nYour work on this request was interrupted. Continue where it ends, and repeat nothing.';

/** Empty: it is not told. */
function textOf(messages: readonly TurnMessage[], place: number): string {
  const message = messages[place];
  const content = message?.content ?? '';
  if (message === undefined || content.startsWith(AWAY_MARKER)) return ''; // ACP-PROMPT-3
  const isLast = () => !messages.slice(place).some(({ role }) => role === 'assistant');
  if (message.role !== 'tool' && message.role !== 'assistant') return content;
  const quoted = escapeMarkers(content); // ACP-PROMPT-7
  if (message.role === 'tool') return resultText(nameOfCall(messages, message), quoted, isLast());
  return content === '' ? '' : `[You, earlier]: ${quoted}`;
}

/** ACP-PROMPT-4 */
function resultText(name: string, content: string, isLast: boolean): string {
  if (!PERMITS.has(name)) return `[Result of your call ${name}]: ${content}`;
  if (!isLast) return `[You asked for a permission. The answer was: ${content}]`;
  return `[You asked for a permission, and were interrupted. The answer was: ${content}. It is not known whether the call ran: look, and ask again if it is still wanted.]`;
}

function nameOfCall(messages: readonly TurnMessage[], { tool_call_id: id }: TurnMessage): string {
  const calls = messages.flatMap(({ tool_calls: made = [] }) => made);
  return calls.find((call) => call.id === id)?.function.name ?? 'of a tool';
}
