import { NatsError } from 'nats';

/** What the client throws where the API of JetStream refuses. */
export function apiError(errorCode: number, description = 'refused', status = 400): NatsError {
  const error = new NatsError('refused', `${status}`);
  error.api_error = { code: status, err_code: errorCode, description };
  return error;
}
