import { HttpAgent } from '@ag-ui/client';
import { forecastOf, image, pdf, WEATHER, words } from './expected.mjs';

/** AG-UI's `HttpAgent`, which verifies the order of the events. */

export const agent = ({ url, check, refuse, say }) => {
  let made = 0;
  const id = () => `m${++made}`;
  const user = (content) => ({ id: id(), role: 'user', content });
  const open = (...messages) =>
    new HttpAgent({
      url: `${url}/ag-ui/pm`,
      threadId: `ag-ui-${Date.now()}-${id()}`,
      initialMessages: messages,
    });
  const last = (own) => own.messages.at(-1).content;
  const seen = async (part, answer) => {
    const own = open(user([{ type: 'text', text: say('see') }, part]));
    await own.runAgent();
    check(last(own), answer);
  };
  /** Parley names what it does not use in an event. */
  const run = async (own, params, reason) => {
    let isUnused = false;
    const onCustomEvent = ({ event }) => {
      isUnused = isUnused || event.name === 'parley.unused';
    };
    await own.runAgent(params, { onCustomEvent });
    if (isUnused) refuse(`${reason}; the event \`parley.unused\` names what was sent`);
  };
  return {
    text: async () => {
      const own = open(user(say('hello')));
      await own.runAgent();
      check(last(own), words.helloAnswer);
    },
    stream: async () => {
      const own = open(user(say('hello')));
      let pieces = 0;
      await own.runAgent({}, { onTextMessageContentEvent: () => void pieces++ });
      check(last(own), words.helloAnswer);
      check(pieces > 1, true);
    },
    'client tools': async () => {
      const own = open(user(say('tool')));
      await run(own, { tools: [WEATHER] }, 'tools of the application are not used');
      const [called] = own.messages.at(-1).toolCalls;
      const content = forecastOf(JSON.parse(called.function.arguments));
      own.addMessage({ id: id(), role: 'tool', toolCallId: called.id, content });
      await own.runAgent({ tools: [WEATHER] });
      check(last(own), words.toolAnswer);
    },
    structured: 'n/a',
    picture: () =>
      seen(
        { type: 'image', source: { type: 'data', value: image.base64, mimeType: image.mediaType } },
        image.answer,
      ),
    file: () =>
      seen(
        { type: 'document', source: { type: 'data', value: pdf.base64, mimeType: pdf.mediaType } },
        pdf.answer,
      ),
    abort: async () => {
      const own = open(user(say('slow')));
      await own.runAgent({}, { onTextMessageContentEvent: () => own.abortRun() }).catch(() => undefined);
    },
    error: async () => {
      const own = open(user(say('fail')));
      let failed = false;
      const onRunErrorEvent = () => {
        failed = true;
      };
      await own.runAgent({}, { onRunErrorEvent, onRunFailed: onRunErrorEvent }).catch(onRunErrorEvent);
      check(failed, true);
    },
    usage: 'n/a',
    'edited history': async () => {
      const own = open(user(say('first')));
      await own.runAgent();
      const edited = open(user(say('edited')), own.messages.at(-1), user(say('recall')));
      await run(edited, {}, 'a new thread begins with the newest messages of the user');
      check(last(edited), words.recalled);
    },
  };
};
