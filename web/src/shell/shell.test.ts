import { describe, expect, it } from "vitest";
import { signInSearch } from "@/pages/signin/search";
import { flag, oneOf, parseSearch, stringifySearch, text, whole } from "@/search";
import { crumbsOf, titleOf } from "./Breadcrumbs";

describe("addresses", () => {
  it("hold plain text, also where it looks like a number", () => {
    const search = { run: "123456789012", at: 42, q: "a&b=c", none: undefined };
    expect(stringifySearch(search)).toBe("?run=123456789012&at=42&q=a%26b%3Dc");
    expect(parseSearch("?run=123456789012&at=42&q=a%26b%3Dc")).toEqual({ run: "123456789012", at: "42", q: "a&b=c" });
    expect(stringifySearch({ q: "" })).toBe("");
  });

  it("are read with care", () => {
    expect([whole("42"), whole("-1"), whole("1.5"), whole("x"), whole("")]).toEqual([
      42,
      undefined,
      undefined,
      undefined,
      undefined,
    ]);
    expect([text(""), text("a"), oneOf("b", ["a", "b"]), oneOf("c", ["a", "b"]), flag("1"), flag("no")]).toEqual([
      undefined,
      "a",
      "b",
      undefined,
      true,
      undefined,
    ]);
  });

  it("do not lead away after a sign-in", () => {
    expect(signInSearch({ to: "/runs?q=a" }).to).toBe("/runs?q=a");
    for (const to of ["//evil.example", "/\\evil.example", "https://evil.example", "javascript:alert(1)", ""]) {
      expect(signInSearch({ to }).to).toBeUndefined();
    }
  });
});

describe("breadcrumbs", () => {
  it("come from the address, and from the page if it knows better", () => {
    expect(crumbsOf("/runs", null)).toEqual([{ label: "Runs" }]);
    expect(crumbsOf("/runs/7d3ab", "orders")).toEqual([{ label: "Runs", to: "/runs" }, { label: "orders" }]);
    expect(crumbsOf("/documents/file/jobs/a%20b.yaml", null)).toEqual([
      { label: "Documents", to: "/documents" },
      { label: "jobs/a b.yaml" },
    ]);
    expect(crumbsOf("/nowhere", null)).toEqual([{ label: "Not found" }]);
    expect(titleOf(crumbsOf("/runs/7d3ab", "orders"))).toBe("orders – Runs – Penstock");
  });
});
