import { ErrorCode, type Msg, type NatsConnection, NatsError } from 'nats';
import { messageOf } from '../../../kernel/index.ts';
import type { BusLog, Heard, Peers } from '../../port.ts';
import { EVERY_DAEMON, type Subjects } from '../../subjects.ts';

/**
 * Messages between daemons over core NATS: `parley.control.<daemon>.<verb>`.
 *
 * PEERS-1 Messages that are not JSON are ignored: other clients may publish on these subjects.
 * PEERS-2 When a handler fails, no answer is sent and the process continues; the asking daemon sees a timeout.
 * PEERS-3 When the connection is lost, pending requests end at once, because no answer can arrive.
 */

const encoder = new TextEncoder();

export class NatsPeers implements Peers {
  readonly #connection: NatsConnection;
  readonly #subjects: Subjects;
  readonly #log: BusLog;
  readonly #self: string;
  #lost: () => void = () => undefined;
  /** Ends the pending requests (PEERS-3). */
  readonly #asking = new Set<() => void>();

  constructor(connection: NatsConnection, subjects: Subjects, log: BusLog, self: string) {
    this.#connection = connection;
    this.#subjects = subjects;
    this.#log = log;
    this.#self = self;
  }

  async ask(daemon: string, verb: string, body: unknown, timeoutMs: number): Promise<Heard> {
    let giveUp = () => {};
    const lost = new Promise<null>((resolve) => {
      giveUp = () => resolve(null);
    });
    this.#asking.add(giveUp);
    try {
      const subject = this.#subjects.control(daemon, verb);
      const asked = this.#connection.request(subject, encode(body), { timeout: timeoutMs });
      const answer = await Promise.race([asked, lost]);
      return answer ? { kind: 'answered', body: answer.json() } : { kind: 'silent' };
    } catch (error) {
      const isGone = error instanceof NatsError && error.code === ErrorCode.NoResponders;
      return { kind: isGone ? 'no-responder' : 'silent' };
    } finally {
      this.#asking.delete(giveUp);
    }
  }

  tell(daemon: string, verb: string, body: unknown): void {
    try {
      this.#connection.publish(this.#subjects.control(daemon, verb), encode(body));
    } catch {
      // Closed or draining: messages may be lost.
    }
  }

  tellAll(verb: string, body: unknown): void {
    this.tell(EVERY_DAEMON, verb, body);
  }

  async listen(handler: (verb: string, body: unknown) => Promise<unknown>): Promise<void> {
    for (const to of [this.#self, EVERY_DAEMON]) {
      this.#connection.subscribe(this.#subjects.control(to, '*'), {
        callback: (error, message) => {
          if (!error) void this.#answer(handler, message);
        },
      });
    }
    await this.#connection.flush(); // the server has the subscriptions before this daemon announces itself
  }

  onLost(listener: () => void): void {
    this.#lost = listener;
  }

  lost(): void {
    this.#lost();
    for (const giveUp of this.#asking) giveUp();
  }

  async #answer(handler: (verb: string, body: unknown) => Promise<unknown>, message: Msg): Promise<void> {
    const verb = message.subject.slice(message.subject.lastIndexOf('.') + 1);
    try {
      const answer = await handler(verb, message.json());
      if (answer !== undefined && message.reply) message.respond(encode(answer));
    } catch (error) {
      this.#log.warn({ verb, reason: messageOf(error) }, 'a request of another daemon failed');
    }
  }
}

function encode(body: unknown): Uint8Array {
  return encoder.encode(JSON.stringify(body ?? {}));
}
