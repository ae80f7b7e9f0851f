import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { type BudgetMember, CLEANED_AT_ONCE, emptyTables, type LeaseEntry } from "./budget-tables.ts";
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

/** A list with one process whose lease is renewed at each of these instants. */
function renewedAt(...instantsUs: readonly number[]) {
  const tables = emptyTables();
  const list = new LeaseList(tables);
  const member: BudgetMember = { claim: "", pending: 0, leaseUs: 0, entry: 0, entryUs: 0 };
  tables.members.set("a", member);
  for (const nowUs of instantsUs) list.renew("a", member, nowUs + LEASE_US, nowUs);
  return { tables, list, member };
}

test("a renewed lease has a new entry when its end has moved by 1/32 of its length", () => {
  assert.deepEqual(renewedAt().list.dump(), { head: 1, tail: 1, headUs: -1 });
  assert.deepEqual(renewedAt(0).list.dump(), { head: 1, tail: 2, headUs: LEASE_US });
  const early = renewedAt(0, 999);
  assert.deepEqual(early.list.dump(), { head: 1, tail: 2, headUs: LEASE_US });
  assert.equal(early.member.leaseUs, 999 + LEASE_US);
  assert.deepEqual(renewedAt(0, 1000).list.dump(), { head: 1, tail: 3, headUs: LEASE_US });
});

test("a lease that ends within 1/32 of its length after its entry keeps the entry, another one gets a new one", () => {
  const checked = (renewedUs: number) => {
    const { list } = renewedAt(0, renewedUs);
    list.expire(LEASE_US, LEASE_US, () => assert.fail("the lease has not ended"));
    return list.dump();
  };
  assert.deepEqual(checked(1), { head: 1, tail: 2, headUs: LEASE_US });
  const { list, member } = renewedAt(0);
  for (const leftUs of [1000, 1001]) {
    member.leaseUs = LEASE_US + leftUs;
    list.expire(LEASE_US, LEASE_US, () => assert.fail("the lease has not ended"));
    const isKept = { head: 1, tail: 2, headUs: LEASE_US };
    assert.deepEqual(list.dump(), leftUs === 1000 ? isKept : { head: 2, tail: 3, headUs: 2 * LEASE_US });
  }
});

test("a lease ends at its instant, and an empty list has no next check", () => {
  const { list } = renewedAt(0);
  const ended: string[] = [];
  const end = (processId: string) => {
    ended.push(processId);
    return false;
  };
  list.expire(LEASE_US - 1, LEASE_US, end);
  assert.deepEqual(ended, []);
  list.expire(LEASE_US, LEASE_US, end);
  list.expire(LEASE_US + 1, LEASE_US, end);
  assert.deepEqual(ended, ["a"]);
  assert.deepEqual(list.dump(), { head: 2, tail: 2, headUs: -1 });
});

test("a list that was stored and read again checks the same process at the same time", () => {
  const { tables, list } = renewedAt(0);
  const again = new LeaseList(tables, list.dump());
  again.expire(LEASE_US - 1, LEASE_US, () => assert.fail("the lease has not ended"));
  assert.deepEqual(again.dump(), list.dump());
});

test("one exchange ends a bounded number of leases, and the next one continues", () => {
  const tables = emptyTables();
  const list = new LeaseList(tables);
  for (let process = 0; process <= CLEANED_AT_ONCE; process += 1) {
    const member: BudgetMember = { claim: "", pending: 0, leaseUs: 0, entry: 0, entryUs: 0 };
    tables.members.set(`${process}`, member);
    list.renew(`${process}`, member, LEASE_US + process, process);
  }
  const ends = () => {
    let count = 0;
    list.expire(2 * LEASE_US, LEASE_US, () => {
      count += 1;
      return false;
    });
    return count;
  };
  assert.deepEqual([ends(), ends(), ends()], [CLEANED_AT_ONCE, 1, 0]);
});
