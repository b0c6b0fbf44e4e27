import { Secret } from '../../../src/config/index.ts';

export const OPENAI = {
  provider: 'openai',
  model: 'm',
  baseURL: 'https://api.example.org/v1',
  apiKeys: [new Secret('sk')],
  fallback: [],
  profile: { preset: 'compatible', chosenBy: 'default' },
};
