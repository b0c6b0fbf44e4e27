import { inOneLine, type Refusal, refusal } from '../../kernel/index.ts';
import { type Author, type HireBudget, OWN_PUBLISHERS, SLUG_PATTERN, SYSTEM_AUTHOR } from '../log/entry.ts';
import { accountsOf, hiredBy, isReplaced } from '../state/hired.ts';
import { publisherOf } from '../state/people.ts';
import { nameFromSlug } from '../state/roster.ts';
import { usedFor } from '../state/state.ts';
import { hiredName, looksLike, plainName } from '../text/look-alikes.ts';
import { firstCodePoints } from '../text/text.ts';
import { isConversationTool, type ToolArguments } from '../tools/conversation-tools.ts';
import { listsTool, TOOL_NAME_OR_PATTERN } from '../tools/tool-rules.ts';
import type { DecisionBuilder } from './decision-builder.ts';

/**
 * Agents that a conversation gets at run time: an agent with the tool `hire`, or an operator, adds one.
 *
 * HIRING-1 A hired agent exists in its conversation only, from its `agent-hired` to its `agent-dismissed`. The log alone
 *          determines it: a restart, an export and a fork keep it. An import dismisses it (FORK-4).
 * HIRING-2 Its tools are within those that its maker has at that moment, `hire` and `dismiss` included. An operator may give
 *          any configured tool.
 * HIRING-3 Neither its slug nor its name looks like that of another agent, of one that was dismissed, of a person in this
 *          conversation, of a configured publisher, or of the system.
 * HIRING-4 It never has more than its makers have now: a tool that a maker loses is lost, the policy for the first maker
 *          applies, and without its maker or its model in the configuration the agent is as removed (TURNS-8). A configured
 *          agent with its slug replaces it.
 * HIRING-5 What it uses counts in its budget, in those of all its makers, and in the limits of the conversation. A budget is
 *          at most what is left of each of these. Where one of them is in dollars, its model has a price.
 * HIRING-6 `limits.hireDepth` bounds the chain of makers, `limits.hiredAgents` the number of agents that are not dismissed.
 * HIRING-7 An agent dismisses only agents below it; an operator any hired one. Those that a dismissed agent hired are
 *          dismissed with it. Their open turns end as aborted, and what waits for them is ended in the same way (TURNS-6).
 */

/** The agent that hires, with its tools in its setting; null: an operator. */
export type Maker = { readonly slug: string; readonly tools: readonly string[] } | null;

export type HireRequest = ToolArguments<'hire'>;

/** In code points. */
const LONGEST = { name: 64, description: 300, persona: 20_000, tools: 128 } as const;

/** Adds the agent; returns why not, or null. */
export function addHired(
  builder: DecisionBuilder,
  author: Author,
  maker: Maker,
  request: HireRequest,
): Refusal | null {
  const { roster } = builder;
  const { slug, persona, tools = [], budget } = request;
  const name = request.name ?? nameFromSlug(slug);
  const model = request.model ?? roster.agents.get(maker?.slug ?? roster.defaultAgent)?.model;
  const refused =
    refusalOfWords({ ...request, name }) ??
    refusalOfLimits(builder, maker) ??
    refusalOfName(builder, slug, name) ??
    refusalOfModel(builder, maker, { ...request, model }) ??
    refusalOfTools(builder, maker, tools) ??
    refusalOfBudget(builder, maker, budget);
  if (refused || model === undefined) return refused;
  builder.add({
    type: 'agent-hired',
    author,
    agent: slug,
    name: hiredName(name),
    description: inLine(request.description),
    persona,
    tools: [...new Set(tools)],
    model,
    budget,
    by: author.id,
    depth: depthBelow(builder, maker),
  });
  return null;
}

/** The same request by a person again: nothing is to do. */
export function isHiredAlready({ state }: DecisionBuilder, request: HireRequest): boolean {
  const known = state.hired[request.slug];
  if (!known || known.isDismissed || known.maker !== null) return false;
  const { card, persona, budget } = known;
  const { model = card.model, name = card.name, tools = [] } = request;
  const asked = [
    model,
    hiredName(name),
    inLine(request.description),
    request.persona,
    request.budget?.tokens,
  ];
  return (
    asked.every(
      (value, at) => value === [card.model, card.name, card.description, persona, budget.tokens][at],
    ) &&
    JSON.stringify([...new Set(tools)]) === JSON.stringify(card.tools) &&
    budget.usd === request.budget?.usd
  );
}

function inLine(text = ''): string {
  return inOneLine(text.replace(/\s+/gu, ' ').trim());
}

function depthBelow({ roster }: DecisionBuilder, maker: Maker): number {
  return maker === null ? 1 : (roster.hired?.get(maker.slug)?.depth ?? 0) + 1;
}

function refusalOfWords({
  slug,
  name,
  description = '',
  persona,
  tools = [],
}: HireRequest & { readonly name: string }): Refusal | null {
  if (!SLUG_PATTERN.test(slug))
    return invalid(
      'slug',
      'lower-case letters, digits and -, at most 64, that begins with a letter or digit',
    );
  const isPlain = name !== '' && plainName(name) === name && inOneLine(name) === name;
  if (!isPlain || isLonger(name, LONGEST.name))
    return invalid('name', `one line of at most ${LONGEST.name} characters, without brackets`);
  if (isLonger(description, LONGEST.description))
    return invalid('description', `at most ${LONGEST.description} characters`);
  if (isLonger(persona, LONGEST.persona)) return invalid('persona', `at most ${LONGEST.persona} characters`);
  return tools.length > LONGEST.tools ? invalid('tools', `at most ${LONGEST.tools} tools`) : null;
}

function isLonger(text: string, most: number): boolean {
  return text.length > most && firstCodePoints(text, most) !== text;
}

function invalid(field: string, expected: string): Refusal {
  return refusal('INVALID_FIELD', `hire: ${field}: expected ${expected}`);
}

/** HIRING-6 */
function refusalOfLimits(builder: DecisionBuilder, maker: Maker): Refusal | null {
  const { depth = 0, agents = 0 } = builder.context.hiring ?? {};
  const active = Object.values(builder.state.hired).filter(({ isDismissed }) => !isDismissed).length;
  if (active >= agents) {
    const message = `this conversation has ${active} hired agents; the limit is ${agents}`;
    return refusal(
      'HIRE_LIMIT',
      message,
      'dismiss one first; limits.hiredAgents in parley.yaml is the limit',
    );
  }
  const below = depthBelow(builder, maker);
  if (below <= depth) return null;
  const message = `the new agent would be ${below} hires deep; the limit is ${depth}`;
  return refusal(
    'HIRE_LIMIT',
    message,
    'ask the agent that hired you; limits.hireDepth in parley.yaml is the limit',
  );
}

function refusalOfName(builder: DecisionBuilder, slug: string, name: string): Refusal | null {
  const { roster, context } = builder;
  const agents = [...roster.agents.values()].flatMap((card) => [card.slug, card.name]);
  const people = new Set<string>([...OWN_PUBLISHERS, ...(context.hiring?.people ?? [])]);
  for (const { author } of builder.all()) {
    if (author.kind !== 'person') continue;
    for (const one of [publisherOf(author.id), author.id.slice(author.id.indexOf('/') + 1), author.name])
      people.add(one);
  }
  const taken = [...agents, ...(roster.takenNames ?? []), ...people, SYSTEM_AUTHOR.id, SYSTEM_AUTHOR.name];
  for (const wanted of new Set([slug, name, hiredName(name)])) {
    const other = taken.find((one) => looksLike(one, wanted) || looksLike(one, `agent ${wanted}`)); // PERSON-3
    if (other === undefined) continue;
    const isSame = other === wanted;
    const message = `${JSON.stringify(wanted)} ${isSame ? 'is' : `looks like ${JSON.stringify(other)}, which is`} taken in this conversation`;
    return refusal(
      'NAME_TAKEN',
      message,
      'choose another slug and name; those of a dismissed agent stay taken',
    );
  }
  return null;
}

function refusalOfModel(
  { roster, state, context }: DecisionBuilder,
  maker: Maker,
  { model, budget }: Pick<HireRequest, 'model' | 'budget'>,
): Refusal | null {
  const models = [...(roster.models ?? [])];
  if (model === undefined || !models.includes(model)) {
    const message = model === undefined ? 'hire: name a model' : `there is no model ${JSON.stringify(model)}`;
    return refusal('UNKNOWN_MODEL', message, `models: ${models.join(', ')}`);
  }
  const { usdPerConversation, unpriced } = context.hiring ?? {};
  const accounts = maker === null ? [] : accountsOf(state, roster, maker.slug);
  const limits = [usdPerConversation, budget?.usd, ...accounts.map((one) => one.budget.usd)];
  if (!unpriced?.has(model) || limits.every((limit) => limit == null)) return null;
  return refusal(
    'INVALID_FIELD',
    `hire: model: ${JSON.stringify(model)} has no price, and a limit in dollars would count its calls as free`,
    `models: ${models.filter((one) => !unpriced.has(one)).join(', ')}; or set models.NAME.price in parley.yaml, of its fallbacks too (0 for a free model)`,
  );
}

/** HIRING-2 */
function refusalOfTools(builder: DecisionBuilder, maker: Maker, tools: readonly string[]): Refusal | null {
  const { hiring } = builder.context;
  const mayGive = (tool: string): boolean => {
    if (tool === 'complete_node' || !TOOL_NAME_OR_PATTERN.test(tool)) return false;
    if (maker !== null) return listsTool(maker.tools, tool);
    return isConversationTool(tool) || hiring?.isConfigured(tool) === true;
  };
  const missing = tools.filter((tool) => !mayGive(tool));
  if (missing.length === 0) return null;
  const named = missing.map((tool) => JSON.stringify(tool)).join(', ');
  if (maker === null)
    return refusal(
      'TOOL_NOT_AVAILABLE',
      `no configured agent has ${named}`,
      'list it in the file of an agent first',
    );
  const own = maker.tools.filter((tool) => tool !== 'complete_node').join(', ');
  return refusal('TOOL_NOT_AVAILABLE', `you cannot give ${named}: you have ${own || 'none'}`);
}

/** HIRING-5 */
function refusalOfBudget(builder: DecisionBuilder, maker: Maker, budget: HireBudget = {}): Refusal | null {
  const { state, context } = builder;
  const { tokensPerConversation = null, usdPerConversation = null } = context.hiring ?? {};
  const used = maker === null ? state : usedFor(state, maker.slug);
  const accounts = maker === null ? [] : accountsOf(state, builder.roster, maker.slug);
  const leftOf = (limits: readonly [limit: number | null | undefined, used: number][]) =>
    Math.min(...limits.map(([limit, used]) => (limit == null ? Number.POSITIVE_INFINITY : limit - used)));
  const tokens = leftOf([
    [tokensPerConversation, used.tokens],
    ...accounts.map((one): [number | undefined, number] => [one.budget.tokens, one.usedTokens]),
  ]);
  const usd = leftOf([
    [usdPerConversation, used.usd],
    ...accounts.map((one): [number | undefined, number] => [one.budget.usd, one.usedUsd]),
  ]);
  if ((budget.tokens ?? 0) > tokens)
    return refusal(
      'BUDGET_EXCEEDED',
      `${budget.tokens} tokens are more than the ${Math.max(0, tokens)} that are left`,
    );
  if ((budget.usd ?? 0) > usd)
    return refusal(
      'BUDGET_EXCEEDED',
      `$${budget.usd} are more than the $${Math.max(0, usd).toFixed(4)} that are left`,
    );
  return null;
}

/** Adds the dismissals, and returns why not, or null. The caller then ends the open turns (`abortDismissed`). */
export function addDismissed(
  builder: DecisionBuilder,
  author: Author,
  maker: Maker,
  { agent: slug, reason }: ToolArguments<'dismiss'>,
): Refusal | null {
  const { hired } = builder.state;
  const isHired = (one: string) => !isReplaced(builder.context.roster, one);
  const known = isHired(slug) ? hired[slug] : undefined;
  const below = (maker === null ? Object.keys(hired) : hiredBy(hired, maker.slug)).filter(isHired);
  if (!known || !below.includes(slug)) {
    const active = below.filter((one) => hired[one]?.isDismissed === false).join(', ') || 'none';
    const why = known ? `${slug} is not yours: you did not hire it` : `there is no hired agent ${slug}`;
    return refusal(known ? 'FORBIDDEN' : 'UNKNOWN_AGENT', why, `agents that you can dismiss: ${active}`);
  }
  for (const agent of [slug, ...hiredBy(hired, slug).filter(isHired)]) {
    if (hired[agent]?.isDismissed === false)
      builder.add({ type: 'agent-dismissed', author, agent, by: author.id, reason });
  }
  return null;
}
