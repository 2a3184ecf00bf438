import testing from '../dist/testing.js'

export const { Clock, memoryClient } = testing
