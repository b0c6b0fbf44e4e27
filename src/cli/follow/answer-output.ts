import {
  cutBy,
  type Entry,
  type FollowEvent,
  finishNotice,
  type PostAnswer,
  splitMessage,
} from '../../client/index.ts';
import type { Context } from '../context.ts';
import { voiceOf } from '../render/palette.ts';
import { createTranscript, type Transcript } from '../render/transcript.ts';

/** How `say --wait` prints the answer to a message while it arrives. */

export interface Show {
  event(event: FollowEvent): void;
  end(): void;
}

export function jsonLines(context: Context): Show {
  return {
    event: (event) => {
      if (event.kind === 'entry') context.value(event.entry);
    },
    end: () => {},
  };
}

/** The text of the agents, with their names if there are several. */
export function spokenWords(
  context: Context,
  answer: PostAnswer,
  waiting: { show(t: string): void; hide(): void },
): Show {
  const [first] = answer.agents;
  const several = answer.agents.length > 1;
  const label = (agent: string) =>
    several || agent !== first ? voiceOf(agent, context.palette)(`[${agent}] `) : '';
  const { palette, io } = context;
  const verbatim = io.stdout.isTTY !== true;
  const transcript: Transcript = createTranscript({ palette, label, details: false, verbatim });
  waiting.show(first === undefined ? '' : `${answer.agents.join(', ')} …`);
  const notes: string[] = [];
  const write = (text: string) => {
    if (text === '') return;
    waiting.hide();
    context.write(text);
  };
  return {
    event(event) {
      if (event.kind === 'live') write(transcript.live(event.agent, event.chunk));
      else if (isCutBeforeWords(event.entry))
        return; // `outcome` reports it
      else if (event.entry.type !== 'message' || event.entry.author.kind === 'agent') {
        write(transcript.entry(event.entry));
        notes.push(...endNote(event.entry));
      }
    },
    end() {
      write(transcript.close());
      for (const note of notes) context.note(note);
    },
  };
}

/** An answer that is whole, but ended for an unusual reason; `outcome` reports one that was cut. */
function endNote(entry: Entry): string[] {
  if (entry.type !== 'message' || cutBy(entry.finishReason)) return [];
  const notice = finishNotice(entry.finishReason);
  return notice === null ? [] : [`parley: the answer of ${entry.author.id} was ${notice}`];
}

function isCutBeforeWords(entry: Entry): boolean {
  if (entry.type !== 'message' || !cutBy(entry.finishReason)) return false;
  const { text, failure } = splitMessage(entry);
  return failure !== null && text === '';
}
