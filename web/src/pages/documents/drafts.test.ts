// @vitest-environment happy-dom
import { beforeEach, describe, expect, it } from "vitest";
import { drafts, dropDraft, keepDraft, readDraft } from "./drafts";

describe("drafts", () => {
  beforeEach(() => sessionStorage.clear());

  it("are there again after a reload", () => {
    keepDraft("file:a.yaml", { text: "kind: Job", digest: "d1" });
    expect(readDraft("file:a.yaml")).toEqual({ text: "kind: Job", digest: "d1" });
    expect([...drafts()]).toEqual(["file:a.yaml"]);
    dropDraft("file:a.yaml");
    expect(readDraft("file:a.yaml")).toBeNull();
  });

  it("ignore what is not one of ours", () => {
    sessionStorage.setItem("penstock.draft.x", "not json");
    sessionStorage.setItem("penstock.draft.y", '{"digest": 1}');
    expect(readDraft("x")).toBeNull();
    expect(readDraft("y")).toBeNull();
  });

  it("do without a store", () => {
    expect(readDraft("a", null)).toBeNull();
    expect(() => keepDraft("a", { text: "", digest: null }, null)).not.toThrow();
  });
});
