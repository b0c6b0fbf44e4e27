import { describe, expect, it } from 'vitest';
import {
  FileCache,
  PLAIN_FORM,
  Requests,
  reductionEntry,
  sealed,
  type WireForm,
} from '../../../src/agents/index.ts';
import {
  Conversation,
  checkLaws,
  DEFAULT_VIEW_POLICY,
  type FilePart,
  partsOf,
  summaryEntry,
} from '../../../src/conversation/index.ts';
import { contentsOf, filesIn, hashOf, sampleFile } from '../../support/sample-files.ts';
import { Log, sourcesOf } from './support.ts';

const MIB = 1024 * 1024;
const ALL = ['image', 'pdf', 'audio'] as const;

function picture(n: number, size = MIB): FilePart {
  return { ...sampleFile('image/png', n).part, size, width: 1_000, height: 750 };
}

/** A conversation with pm, whose model takes files. */
class Talk {
  readonly log = new Log();
  readonly requests: Requests;

  constructor(
    contextTokens = 200_000,
    dialect: 'chat' | 'anthropic' = 'anthropic',
    accepts: WireForm['accepts'] | null = ALL,
  ) {
    const sources = sourcesOf('pm');
    const [setup] = sources.agents.values();
    if (!setup) throw new Error('no agent');
    const form = { ...PLAIN_FORM, dialect, ...(accepts && { accepts }) };
    const profile = { ...setup.profile, contextTokens, form };
    const agents = new Map([['pm', { ...setup, profile }]]);
    this.requests = new Requests('demo', () => ({ ...sources, agents }));
  }

  say(content: string, ...files: FilePart[]): number {
    const at = this.log.person(content);
    Object.assign(this.log.entries[at] ?? {}, { parts: partsOf(content, files) });
    return at;
  }

  exchange(content: string, ...files: FilePart[]): number {
    const at = this.say(content, ...files);
    this.log.answer('pm', this.log.start('pm', at), 'yes');
    return at;
  }

  /** The next request of a turn for the entry, after the reductions before it. */
  next(at: number) {
    const turnId = this.log.start('pm', at);
    const dropped: (readonly number[])[] = [];
    for (;;) {
      const log = new Conversation({ viewPolicy: () => DEFAULT_VIEW_POLICY } as never, this.log.entries);
      const next = this.requests.draft(log, 'pm', turnId);
      if (!next) throw new Error('no request');
      const { draft, reduction } = next;
      if (!reduction) return { draft, dropped };
      const content = reduction.write(null);
      const written = reductionEntry(reduction, { content, writtenBy: 'extract' });
      const entry = summaryEntry(this.log.entries.length, turnId, 'pm', written);
      dropped.push(reduction.plan.withoutFiles);
      this.log.entries.push(entry);
      expect(checkLaws(this.log.entries).filter((fault) => fault.includes('summary'))).toEqual([]);
    }
  }
}

const names = (files: readonly FilePart[]) => files.map(({ name }) => name);

describe('a reduction of files', () => {
  it('frees half of the bytes of a request, the oldest files first, and leaves their lines and every text', () => {
    const talk = new Talk();
    const asked = Array.from({ length: 20 }, (_, n) => talk.exchange(`question ${n}`, picture(n, 2 * MIB)));
    const { draft, dropped } = talk.next(talk.say('and now?', picture(99, 2 * MIB)));
    expect(dropped).toEqual([asked.slice(0, 16)]);
    expect(names(draft.files)).toEqual(['16.png', '17.png', '18.png', '19.png', '99.png']);
    const text = draft.request.messages.map(({ content }) => content).join('\n');
    for (let n = 0; n < 20; n++) expect(text).toContain(`question ${n}\n[file ${n}.png: image/png, 2.1 MB, `);
    expect(text.match(/; not shown any more\]/g)).toHaveLength(16);
  });

  it('frees half of the number of files', () => {
    const talk = new Talk(200_000, 'chat');
    for (let n = 0; n < 20; n++) talk.exchange(`question ${n}`, picture(n, 100));
    expect(names(talk.next(talk.say('and now?', picture(20, 100))).draft.files)).toHaveLength(10);
  });

  it('keeps later requests as they are until the limit is reached again', () => {
    const talk = new Talk();
    for (let n = 0; n < 10; n++) talk.exchange(`question ${n}`, picture(n, 2 * MIB));
    const first = talk.next(talk.say('now?', picture(10, 2 * MIB)));
    talk.log.answer('pm', 'turn-10', 'yes');
    const second = talk.next(talk.say('then?', picture(11, 2 * MIB)));
    expect([first.dropped.length, second.dropped.length]).toEqual([1, 0]);
    const [one, two] = [first, second].map(({ draft }) =>
      JSON.stringify(draft.request.messages).slice(0, -1),
    );
    expect(two?.startsWith(one ?? '?')).toBe(true);
  });

  it('takes files before any text where the window is exceeded', () => {
    const talk = new Talk(9_000);
    const asked = Array.from({ length: 10 }, (_, n) => talk.exchange(`question ${n}`, picture(n, 100)));
    const { draft, dropped } = talk.next(talk.say('now?'));
    expect(dropped).toHaveLength(1);
    expect(dropped[0]).toEqual(asked.slice(0, dropped[0]?.length));
    expect(draft.request.messages.filter(({ content }) => content?.includes('question'))).toHaveLength(10);
  });

  it('shows no file of the message to answer only where the request could not be sent with it', () => {
    const shown = (contextTokens: number) => {
      const talk = new Talk(contextTokens);
      talk.exchange('hello '.repeat(100));
      const { draft } = talk.next(talk.say('look', picture(1, 100)));
      return [draft.files.length, draft.fault?.code ?? null];
    };
    expect(shown(3_000)).toEqual([1, null]);
    expect(shown(1_500)).toEqual([0, null]);
  });

  it('is not needed for a model that is not shown files, nor for an agent in another program', () => {
    for (const accepts of [null, 'references'] as const) {
      const talk = new Talk(200_000, 'chat', accepts);
      for (let n = 0; n < 30; n++) talk.exchange(`question ${n}`, picture(n, 2 * MIB));
      expect(talk.next(talk.say('now?')).dropped).toEqual([]);
    }
  });

  it('names the files of what a summary covers', () => {
    const talk = new Talk(2_000, 'chat', null);
    for (let n = 0; n < 30; n++) talk.exchange(`question ${n} ${'word '.repeat(3)}`, picture(n));
    const { draft } = talk.next(talk.say('now?'));
    const summary = draft.request.messages.find(({ content }) => content?.startsWith('=== SUMMARY'));
    expect(summary?.content).toMatch(/^> \[file \d+\.png: image\/png, 1\.0 MB, @blob\/[0-9a-f]{12}\]$/m);
  });

  it('is planned without reading a file; the request after it has the bytes of those that remain', async () => {
    const talk = new Talk(200_000, 'chat');
    const samples = Array.from({ length: 25 }, (_, n) => sampleFile('image/png', n));
    for (const { part } of samples) talk.exchange('look', part);
    const read: string[] = [];
    const cache = new FileCache(async (sha256) => {
      read.push(sha256);
      const found = samples.find(({ part }) => part.sha256 === sha256);
      return found
        ? (async function* () {
            yield found.bytes;
          })()
        : null;
    });
    const { draft } = talk.next(talk.say('now?'));
    expect(read).toEqual([]);
    const { request } = sealed(draft, await cache.load(draft.files));
    const { files, faults } = filesIn(JSON.parse(Buffer.concat(request.body).toString('utf8')));
    expect(faults).toEqual([]);
    expect(files.map(({ data }) => hashOf(data))).toEqual(samples.slice(-10).map(({ part }) => part.sha256));
    expect(read).toHaveLength(10);
    expect(sealed(draft, contentsOf(...samples)).request.hash).toBe(request.hash);
  });
});
