import { MsgHdrsImpl } from 'nats';

/**
 * A change of the client library, in effect once this module is loaded: nats.js 2.29 throws for a header line that it would not
 * write itself, and then reads nothing more from its connection. A publisher may write any bytes there, so such lines are
 * dropped, in every message that is received.
 */
const KNOWN_LINE = /^[\x21-\x39\x3b-\x7e]+:[^\r\n]*$/;

const { decode } = MsgHdrsImpl;

MsgHdrsImpl.decode = (bytes) => {
  try {
    return decode(bytes);
  } catch {
    const [first = '', ...lines] = new TextDecoder().decode(bytes).split('\r\n');
    const kept = lines.filter((line) => KNOWN_LINE.test(line));
    return decode(new TextEncoder().encode([first, ...kept, '', ''].join('\r\n')));
  }
};
