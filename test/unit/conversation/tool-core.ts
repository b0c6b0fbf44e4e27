import {
  type Command,
  type Decision,
  type Judgement,
  pendingApprovals,
  type ToolRules,
} from '../../../src/conversation/index.ts';
import { card, type RunTool } from './core.ts';
import { typed } from './life.ts';
import { type Called, expectGuarded, PERSON, TeamCore, TOOLS } from './team-core.ts';

/** A team with tools that have effects, some of which need an approval. */

export type AnswerWord = Extract<Command, { type: 'answer' }>['answer'];

/** What a person may say beside the word. */
type BesideAnswer = Partial<
  Pick<Extract<Command, { type: 'answer' }>, 'reason' | 'result' | 'arguments' | 'always'>
>;

export const POLICIES = ['by name', 'run everything', 'ask everything', 'forbid everything'] as const;
export type Policy = (typeof POLICIES)[number];

/** `safe…` runs, `risky…` runs alone, `gated…` needs an approval. Another `policy` overrides all names. */
class Judge implements ToolRules {
  policy: Policy = 'by name';
  argumentsFault?: NonNullable<ToolRules['argumentsFault']>;

  judge({ name, arguments: text }: { name: string; arguments: string }): Judgement {
    if (this.policy === 'run everything') return { kind: 'run', risk: 'safe' };
    if (this.policy === 'ask everything') return { kind: 'ask', risk: 'risky', why: 'everything is asked' };
    if (this.policy === 'forbid everything') return refused('FORBIDDEN', `${name} is forbidden`);
    if (text.includes('wrong')) return refused('INVALID_ARGUMENTS', `${name}: wrong arguments`);
    if (name.startsWith('safe')) return { kind: 'run', risk: 'safe' };
    if (name.startsWith('risky')) return { kind: 'run', risk: 'risky' };
    if (name.startsWith('gated'))
      return { kind: 'ask', risk: 'risky', why: `${name} changes things`, covers: `calls of ${name}` };
    if (name.startsWith('forbidden')) return refused('FORBIDDEN', `${name} is forbidden`);
    return refused('TOOL_NOT_AVAILABLE', `you have no tool ${name}`);
  }

  fingerprint(text: string): string {
    return `hash of ${text}`;
  }
}

function refused(code: string, message: string): Judgement {
  return { kind: 'refuse', code, message };
}

export class ToolCore extends TeamCore {
  readonly judge: Judge;

  constructor(slugs: readonly string[] = ['pm', 'dev', 'qa'], check = true) {
    const judge = new Judge();
    super({ slugs, cards: slugs.map((slug) => card(slug, { tools: TOOLS })), tools: judge }, check);
    this.judge = judge;
  }

  override do(command: Command): Decision {
    const decision = super.do(command);
    expectGuarded(this);
    return decision;
  }

  /** pm gets a message and calls these tools. */
  static calling(...names: readonly (string | Called)[]): ToolCore {
    const core = new ToolCore().posted('go');
    core.act('pm', 'working', ...names.map((name): Called => (typeof name === 'string' ? [name] : name)));
    return core;
  }

  running(): string[] {
    return this.tools.map((tool) => tool.name);
  }

  pending(): string[] {
    return pendingApprovals(this.conversation.state).map(({ call }) => call.name);
  }

  approvalOf(name: string): string {
    const found = pendingApprovals(this.conversation.state).find(({ call }) => call.name === name);
    if (!found) throw new Error(`no approval of ${name} is pending`);
    return found.approvalId;
  }

  tool(name: string): RunTool {
    const found = this.tools.find((tool) => tool.name === name);
    if (!found) throw new Error(`${name} does not run`);
    return found;
  }

  done(name: string, result = `did ${name}`): Decision {
    return this.finish(this.tool(name), result);
  }

  answerApproval(name: string, answer: AnswerWord, more: BesideAnswer = {}): Decision {
    return this.answerApprovalId(this.approvalOf(name), answer, more);
  }

  answerApprovalId(approvalId: string, answer: AnswerWord, more: BesideAnswer = {}): Decision {
    return this.do({ type: 'answer', approvalId, answer, by: PERSON, ...more });
  }

  expire(approvalId: string): Decision {
    return this.do({ type: 'expire-approval', approvalId });
  }

  starts(name: string) {
    return typed(this.entries, 'tool-started').filter((entry) => entry.toolName === name);
  }

  /** The results in pm's next request, in its order. */
  shown(): (string | null)[] {
    return this.request('pm').flatMap(([role, content]) => (role === 'tool' ? [content ?? null] : []));
  }
}
