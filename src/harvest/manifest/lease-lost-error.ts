import { StoreError } from "../../errors.ts";

/**
 * The lease of this worker has ended, because the worker could not renew it in time. Its works belong to other workers
 * now, so it must stop their requests. To continue, it joins the run again.
 */
export class LeaseLostError extends StoreError {
  constructor(leaseMs: number) {
    super(
      `the lease of this worker ended: it could not be renewed for ${leaseMs / 1000} s, or its connection broke; ` +
        "its works were given back, and docstokg worker continues the run",
    );
  }
}
