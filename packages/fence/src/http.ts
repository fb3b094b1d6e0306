export { FENCING_HEADER, FencingRequiredError, type Problem, problemOf } from './http/errors.js'
export {
  fencedFetch,
  fencingHeader,
  type HeadersLike,
  holdOfRequest,
  parseFencingHeader,
} from './http/header.js'
