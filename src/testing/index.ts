/** For the tests of those who build on us: time that obeys. */
export { FakeTime, type FakeTimeOptions } from "./fake-time.ts";
