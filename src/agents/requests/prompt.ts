import {
  type AgentCard,
  END,
  escapeMarkers,
  escapeTokens,
  filledBrief,
  type Mode,
  modeBanner,
  nodeOf,
  type Roster,
  type Run,
  schemaOfNode,
  schemaWords,
  targetsOf,
  type ViewMessage,
  type Workflow,
  type WorkflowNode,
  type Workflows,
} from '../../conversation/index.ts';
import type { JsonRecord } from '../../kernel/index.ts';
import type { Subject } from '../tool-port.ts';

/**
 * The prefix of every request: one system message, never stored. What changes often comes last, so that provider
 * prompt caches hit: base rules, tool policy, persona, mode banner.
 */

/** The texts of the prefix, from `config/prompts/`. */
export interface PromptTexts {
  /** Base rules of the modes chat and agent. */
  readonly baseChat: string;
  /** Base rules of mode run. */
  readonly baseRun: string;
  /** How to use tools; only for agents with tools. */
  readonly toolPolicy: string;
}

export interface PersonaSource {
  readonly card: AgentCard;
  /** The Markdown of the agent's file; left out in mode chat. */
  readonly persona: string;
  /** The JSON Schema of its answers. */
  readonly answers?: JsonRecord;
}

/** `toolPolicy`: how to use tools, with the agent's tools; empty if it has none. */
export function prefix(
  agent: PersonaSource,
  mode: Mode,
  texts: PromptTexts,
  roster: Roster,
  toolPolicy = agent.card.tools.length > 0 ? texts.toolPolicy : '',
): string {
  const sections = [mode === 'run' ? texts.baseRun : texts.baseChat];
  sections.push(toolPolicy);
  if (mode !== 'chat') sections.push(agent.persona);
  const filled = sections.map((section) => fill(section, agent.card, roster).trim());
  if (agent.answers) filled.push(`ANSWER AS JSON\n${schemaWords(agent.answers)}`);
  return [...filled.filter((section) => section !== ''), modeBanner(mode)].join('\n\n');
}

/** Replaces `{{name}}`, `{{slug}}`, `{{description}}` of this agent and `{{agents}}`: the others, one line each. */
function fill(text: string, card: AgentCard, roster: Roster): string {
  const values: Record<string, () => string> = {
    name: () => card.name,
    slug: () => card.slug,
    description: () => card.description,
    agents: () => otherAgents(card, roster),
  };
  return text.replace(/\{\{(\w+)\}\}/g, (whole, key: string) =>
    Object.hasOwn(values, key) ? (values[key]?.() ?? whole) : whole,
  );
}

function otherAgents(card: AgentCard, roster: Roster): string {
  const others = [...roster.agents.values()].filter((agent) => agent.slug !== card.slug);
  if (others.length === 0) return '(none)';
  // The card of a hired agent is the text of a model (MARKER-3).
  const line = ({ name, slug, description }: AgentCard) =>
    escapeTokens(`- ${name} (\`${slug}\`): ${description}`);
  return others.map(line).join('\n');
}

/** Marks a message that no participant wrote. */
const NOT_FROM_A_PERSON = '(from Parley; not something a person said)';

/** Mode run, for the agent of the current node: the messages between prefix and history. Never stored. */
export function runContext(run: Run, workflows: Workflows): readonly ViewMessage[] {
  const node = nodeOf(workflows, run.workflowId, run.node);
  if (!node) return [];
  const outcomes = Object.entries(node.outcomes).map(
    ([outcome, next]) => `- ${outcome}: leads to ${targetsOf(next).join(' and ')}`,
  );
  // The summary is an agent's text: markers in it are escaped (L17).
  const before = run.before.map(
    ({ node: name, outcome, summary }) =>
      `The node ${name} before ended with the outcome ${outcome}:\n${escapeMarkers(summary)}`,
  );
  const step =
    before.length > 0
      ? `STEP ${NOT_FROM_A_PERSON}\n${before.join('\n\n')}`
      : `STEP ${NOT_FROM_A_PERSON}\nThis is the first node of the run.`;
  const value = valueWords(node, workflows.get(run.workflowId));
  const texts = [
    `RUN_DIRECTIVE ${NOT_FROM_A_PERSON}\nYou are executing the node ${run.node} of the workflow ${run.workflowId}. Do what its brief says, and nothing of other nodes. When it is done, call complete_node with one of its outcomes; until then the run does not move on.`,
    `NODE_BRIEF ${NOT_FROM_A_PERSON}\n${filledBrief(node.brief, run.values)}\n\nOutcomes:\n${outcomes.join('\n')}${value}`,
    step,
  ];
  return texts.map((content) => ({ role: 'user', content }));
}

/** Which value `complete_node` demands. */
function valueWords(node: WorkflowNode, workflow: Workflow | undefined): string {
  const targets = [...Object.values(node.outcomes), ...(node.next ?? []).map(({ to }) => to)].flatMap(
    targetsOf,
  );
  const onwards = schemaOfNode(workflow, node, []);
  const atEnd = targets.includes(END) ? schemaOfNode(workflow, node, [END]) : onwards;
  if (!atEnd) return '';
  const which = atEnd === onwards ? '' : ' if the outcome ends the run';
  const text = `\n\nGive complete_node a \`value\`${which}, which matches this JSON Schema:\n${JSON.stringify(atEnd)}`;
  if (atEnd === onwards || !onwards) return text;
  return `${text}\n\nFor any other outcome, the value matches this JSON Schema:\n${JSON.stringify(onwards)}`;
}

/** A call runs, waits for a person's approval, or is refused. */
export type Ruling = 'runs' | 'asks' | 'forbidden';

/**
 * Whether one agent may call a tool, before the arguments of a call are known. The prompt and the enforcement use the
 * same value, so an agent is never offered a tool that the policy then refuses.
 */
export interface ToolAvailability {
  /** The first rule whose patterns all match decides. */
  readonly rules: readonly {
    readonly match: Readonly<Record<string, string>>;
    readonly ruling: Ruling;
  }[];
  readonly otherwise: Ruling;
  readonly subject?: Subject;
}

export const ALWAYS_RUNS: ToolAvailability = { rules: [], otherwise: 'runs' };

/** No call of this tool can run. */
export function isForbidden({ rules, otherwise }: ToolAvailability): boolean {
  return otherwise === 'forbidden' && rules.every(({ ruling }) => ruling === 'forbidden');
}

const WORDS: Readonly<Record<Ruling, string>> = {
  runs: 'at once',
  asks: "after a person's approval",
  forbidden: 'never: forbidden to you',
};

/** The tools of an agent for its prompt: one line per ruling, in a stable order. */
export function describeTools(tools: ReadonlyMap<string, ToolAvailability>): string {
  const names = [...tools.keys()].sort();
  const plain = (Object.keys(WORDS) as Ruling[]).flatMap((ruling) => {
    const own = names.filter((name) => onlyRuling(tools.get(name)) === ruling);
    return own.length > 0 ? [`- ${WORDS[ruling]}: ${own.map(code).join(', ')}`] : [];
  });
  const byArguments = names.flatMap((name) => {
    const tool = tools.get(name);
    return tool && onlyRuling(tool) === null ? [`- by its arguments: ${code(name)} ${conditions(tool)}`] : [];
  });
  const notes = [
    { what: 'on a protected path (`.git`, `.npmrc`, the configuration and others)', writes: true },
    { what: 'on a path that may hold secrets (`.npmrc`, `*.pem` and others)', writes: false },
  ].flatMap(({ what, writes }) => {
    const guarded = names
      .filter((name) => runsUnapproved(tools.get(name), writes))
      .map(code)
      .join(', ');
    return guarded === ''
      ? []
      : [`- ${what} only after a person's approval, unless a pattern names it: ${guarded}`];
  });
  return ['Your tools now, and when a call of them is run:', ...plain, ...byArguments, ...notes].join('\n');
}

function runsUnapproved(tool: ToolAvailability | undefined, writes: boolean): boolean {
  if (tool?.subject?.kind !== 'path' || tool.subject.writes !== writes) return false;
  return [tool.otherwise, ...tool.rules.map(({ ruling }) => ruling)].includes('runs');
}

/** The ruling for every call; null: it depends on the arguments. */
function onlyRuling(tool: ToolAvailability | undefined): Ruling | null {
  if (!tool) return null;
  const { rules, otherwise } = tool;
  return rules.every(({ ruling }) => ruling === otherwise) ? otherwise : null;
}

function conditions({ rules, otherwise }: ToolAvailability): string {
  const cases = rules.map(({ match, ruling }) => {
    const patterns = Object.entries(match).map(([key, pattern]) => `${key} matches ${code(pattern)}`);
    return `where ${patterns.join(' and ')}, ${WORDS[ruling]}`;
  });
  return [...cases, `else ${WORDS[otherwise]}`].join('; ');
}

function code(text: string): string {
  return `\`${text}\``;
}
