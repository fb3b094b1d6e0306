export * from './history/index.js'
