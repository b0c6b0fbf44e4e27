import {
  guard,
  type NextRequest,
  type PlannedReduction,
  reductionEntry,
  sealed,
} from '../src/agents/index.ts';
import { median, report, rounded } from './support/report.ts';
import { type ModelCall, TeamAtWork } from './support/team.ts';

/**
 * How much of each request a provider has seen before, and what it takes to keep a long conversation within a window.
 * A team of agents works, hands over and uses tools (`support/team.ts`); each request is compared, byte for byte, with
 * the same agent's one before. Every one of them must be valid and within the window, or the benchmark fails.
 *
 * - `prefix`: 200 turns in a window that is never full. The ratio: of all bytes of requests, those that repeat the
 *   beginning of the request before.
 * - `window`: a conversation of many entries in windows of a usual size: the same ratio, with and without the requests
 *   that follow a reduction; how many reductions, and how long each takes until its extract is written.
 *
 *     npx tsx bench/team.ts [entries]
 */

const [entryCount = '20000'] = process.argv.slice(2);
const WIDE = 1_000_000_000;

interface Bytes {
  same: number;
  all: number;
}

class Watched {
  readonly team: TeamAtWork;
  requests = 0;
  turns = new Set<string>();
  readonly reductionMs: number[] = [];
  readonly requestMs: number[] = [];
  readonly overall: Bytes = { same: 0, all: 0 };
  /** Without the first request of an agent, and those after a reduction. */
  readonly between: Bytes = { same: 0, all: 0 };
  refused = 0;
  largest = 0;
  private readonly before = new Map<string, Uint8Array>();
  private readonly reduced = new Set<string>();

  constructor(agents: number, contextTokens: number) {
    this.team = new TeamAtWork(agents, contextTokens, (call) => this.prepare(call));
  }

  private prepare({ agent, turnId }: ModelCall): boolean {
    const { conversation, requests } = this.team;
    const started = performance.now();
    const next = requests.draft(conversation, agent, turnId);
    if (!next) return false;
    const prepared = { ...sealed(next.draft, new Map()), reduction: next.reduction };
    const planned = performance.now();
    const upTo = conversation.state.agents[agent]?.turn?.upTo ?? conversation.entries.length;
    if (prepared.reduction) {
      const reduction = extracted(prepared.reduction);
      this.reductionMs.push(performance.now() - started);
      this.reduced.add(agent);
      this.team.do({ type: 'reduce-view', agent, turnId, upTo, reduction });
      return false;
    }
    if (prepared.fault?.code === 'CONTEXT_STILL_TOO_LARGE') {
      this.refused += 1;
      const { code, message } = prepared.fault;
      const report = { agent, turnId, duration: 0, requestHash: '', upTo };
      this.team.do({ type: 'model-failed', code, message, partial: '', ...report });
      return false;
    }
    this.requestMs.push(planned - started);
    this.turns.add(turnId);
    this.check(agent, prepared);
    this.compare(agent, Buffer.concat(prepared.request.body));
    return true;
  }

  private check(agent: string, { request, tokens, fault }: NextRequest): void {
    const { profile } = this.team.setups.get(agent)!;
    const found = fault ?? guard(request.messages, tokens, profile);
    if (found) throw new Error(found.message);
    const room = profile.contextTokens - profile.maxOutputTokens;
    if (tokens > room) throw new Error(`${tokens} tokens in a window with room for ${room}`);
    this.largest = Math.max(this.largest, tokens / room);
    this.requests += 1;
    if (this.requests % 100 > 0) return;
    const sent: { messages: unknown } = JSON.parse(Buffer.concat(request.body).toString('utf8'));
    if (JSON.stringify(sent.messages) !== JSON.stringify(request.messages)) throw new Error('other bytes');
  }

  private compare(agent: string, body: Uint8Array): void {
    const earlier = this.before.get(agent);
    const same = earlier ? commonLength(earlier, body) : 0;
    add(this.overall, same, body.length);
    if (earlier && !this.reduced.has(agent)) add(this.between, same, body.length);
    this.reduced.delete(agent);
    this.before.set(agent, body);
  }
}

function extracted(planned: PlannedReduction) {
  return reductionEntry(planned, { content: planned.write(null), writtenBy: 'extract' });
}

function add(bytes: Bytes, same: number, all: number): void {
  bytes.same += same;
  bytes.all += all;
}

function share({ same, all }: Bytes): number {
  return rounded(same / all);
}

function commonLength(one: Uint8Array, other: Uint8Array): number {
  const shorter = Math.min(one.length, other.length);
  let same = 0;
  for (let step = 65_536; step > 0; step = Math.floor(step / 16)) {
    while (same < shorter) {
      const end = Math.min(shorter, same + step);
      if (Buffer.compare(one.subarray(same, end), other.subarray(same, end)) !== 0) break;
      same = end;
    }
  }
  return same;
}

for (const agents of [3, 4, 5]) {
  const watched = new Watched(agents, WIDE);
  while (watched.turns.size < 200) watched.team.step();
  report('prefix', {
    agents,
    ratio: share(watched.overall),
    wanted: '>= 0.95',
    turns: watched.turns.size,
    requests: watched.requests,
    entries: watched.team.conversation.entries.length,
  });
}

for (const contextTokens of [128_000, 16_000]) {
  const watched = new Watched(5, contextTokens);
  const { entries } = watched.team.conversation;
  while (entries.length < Number(entryCount)) watched.team.step();
  report('window', {
    window: contextTokens,
    ratio: share(watched.overall),
    betweenReductions: share(watched.between),
    entries: entries.length,
    agents: 5,
    turns: watched.turns.size,
    requests: watched.requests,
    refused: watched.refused,
    fullest: rounded(watched.largest),
    reductions: watched.reductionMs.length,
    reductionMs: rounded(median(watched.reductionMs), 1),
    slowestReductionMs: rounded(Math.max(...watched.reductionMs), 1),
    lastReductionsMs: rounded(median(watched.reductionMs.slice(-20)), 1),
    requestMs: rounded(median(watched.requestMs), 2),
  });
}
