import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { type BudgetMember, emptyTables, type LeaseEntry } from "./budget-tables.ts";
import { LeaseList } from "./lease-list.ts";

const LEASE_US = 32_000;

test("leases end at their time to within 1/32 of their length, also of processes that renew them at random", () => {
  const step = fc.record({ process: fc.constantFrom("a", "b", "c", "d"), afterUs: fc.integer({ min: 0, max: 9000 }) });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 100 }), steps => {
      const tables = emptyTables();
      const list = new LeaseList(tables);
      const leases = new Map<string, number>();
      let nowUs = 0;
      for (const { process, afterUs } of steps) {
        nowUs += afterUs;
        const member: BudgetMember = tables.members.get(process) ?? {
          claim: "",
          pending: 0,
          leaseUs: 0,
          entry: 0,
          entryUs: 0,
        };
        tables.members.set(process, member);
        list.renew(process, member, nowUs + LEASE_US, nowUs);
        leases.set(process, nowUs + LEASE_US);
        list.expire(nowUs, LEASE_US, (name, { leaseUs }) => {
          assert.ok(leaseUs <= nowUs);
          tables.members.delete(name);
          leases.delete(name);
          return false;
        });
        for (const [name, leaseUs] of leases) assert.ok(leaseUs > nowUs - LEASE_US / 32, `${name} ended at ${leaseUs}`);
      }
    }),
  );
});

test("a process that stays a member is looked at again one lease later", () => {
  const tables = emptyTables();
  const list = new LeaseList(tables);
  const member: BudgetMember = { claim: "", pending: 0, leaseUs: 0, entry: 0, entryUs: 0 };
  tables.members.set("a", member);
  list.renew("a", member, LEASE_US, 0);
  let ends = 0;
  const keep = () => {
    ends += 1;
    return true;
  };
  list.expire(LEASE_US, LEASE_US, keep);
  list.expire(2 * LEASE_US - 1, LEASE_US, keep);
  assert.equal(ends, 1);
  list.expire(2 * LEASE_US, LEASE_US, keep);
  assert.equal(ends, 2);
});

test("a busy process has few entries, however often it renews its lease", () => {
  const tables = emptyTables();
  const list = new LeaseList(tables);
  const member: BudgetMember = { claim: "", pending: 0, leaseUs: 0, entry: 0, entryUs: 0 };
  tables.members.set("a", member);
  for (let nowUs = 0; nowUs < 10 * LEASE_US; nowUs += 10) {
    list.renew("a", member, nowUs + LEASE_US, nowUs);
    list.expire(nowUs, LEASE_US, () => assert.fail("the lease is renewed"));
  }
  assert.ok((tables.leases as Map<number, LeaseEntry>).size <= 34);
});
