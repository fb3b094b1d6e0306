export { embeddedEngine } from './embedded/engine.js'
