export { embeddedEngine } from './embedded.js'
