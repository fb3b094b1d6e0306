export { freePort } from '../tests/services/ports.js'
