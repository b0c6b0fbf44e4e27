export { type Gateway, type GatewayOptions, startGateway } from './gateway.ts';
export type { Role, Token } from './guard/access.ts';
export type { Arrival, GatewayPort, Measurement, Measurements, Wire } from './port.ts';
