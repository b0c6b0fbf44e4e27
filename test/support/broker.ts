import { it as base } from 'vitest';
import { type Broker, startBroker } from '../unit/bus/support.ts';

/** `it` with a `broker` for each test that names it. `brokerConfig`: further lines of the server's configuration. */
export const it = base.extend<{ brokerConfig: string; broker: Broker }>({
  brokerConfig: '',
  broker: async ({ brokerConfig }, use) => {
    const broker = await startBroker(brokerConfig);
    await use(broker);
    await broker.stop();
  },
});
