#!/usr/bin/env python3
"""Checks a FOCUS 1.2 export: columns, nullability, allowed values, arithmetic, and sums by invoice.

    bulkhead usage --from 2026-11-01 --to 2026-12-01 -o focus > november.csv
    scripts/check-focus.py november.csv [--total=12.34]

Written from the specification's column list alone; shares nothing with the exporter."""
import argparse
import collections
import csv
import json
import re
import sys
from decimal import Decimal, getcontext

getcontext().prec = 60

MANDATORY = """BilledCost BillingAccountId BillingAccountName BillingCurrency BillingPeriodStart BillingPeriodEnd
ChargeCategory ChargeClass ChargeDescription ChargePeriodStart ChargePeriodEnd ContractedCost EffectiveCost
InvoiceIssuerName ListCost PricingQuantity PricingUnit ProviderName PublisherName ServiceCategory ServiceName""".split()
CONDITIONAL = """ConsumedQuantity ConsumedUnit ListUnitPrice ContractedUnitPrice PricingCategory RegionId ResourceId ResourceName
ResourceType SkuId SkuMeter SkuPriceId SkuPriceDetails SubAccountId SubAccountName SubAccountType Tags""".split()
RECOMMENDED = "InvoiceId ChargeFrequency ServiceSubcategory".split()
MAY_BE_NULL = set("BillingAccountName ChargeClass ChargeDescription PricingQuantity PricingUnit".split())
CATEGORIES = {"Usage", "Purchase", "Tax", "Credit", "Adjustment"}
FREQUENCIES = {"One-Time", "Recurring", "Usage-Based"}
DECIMAL = re.compile(r"^-?[0-9]+(\.[0-9]+)?([eE]-?[0-9]+)?$")
TIME = re.compile(r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?Z$")
UNIT = re.compile(r"^[A-Z][A-Za-z]*-(Seconds|Minutes|Hours|Days)$")
TOLERANCE = Decimal("0.000000001")  # of hours, by which PricingQuantity may be rounded


def check_row(row, say):
    for name in MANDATORY:
        if name not in MAY_BE_NULL and row[name] == "":
            say(f"{name} is null")
    for name in "BilledCost ContractedCost EffectiveCost ListCost".split():
        if not DECIMAL.match(row[name]):
            say(f"{name} is no number: {row[name]!r}")
            return
    for name in row:
        if name.endswith(("PeriodStart", "PeriodEnd")) and not TIME.match(row[name]):
            say(f"{name} is no UTC time: {row[name]!r}")
            return
    if not re.match(r"^[A-Z]{3}$", row["BillingCurrency"]):
        say(f"BillingCurrency is {row['BillingCurrency']!r}")
    if row["ChargeCategory"] not in CATEGORIES:
        say(f"ChargeCategory is {row['ChargeCategory']!r}")
    if row["ChargeClass"] not in ("", "Correction"):
        say(f"ChargeClass is {row['ChargeClass']!r}")
    if row["ChargeFrequency"] not in FREQUENCIES:
        say(f"ChargeFrequency is {row['ChargeFrequency']!r}")
    if not row["ChargePeriodStart"] < row["ChargePeriodEnd"] and row["x_ChargeKind"] != "correction":
        say("the charge period has no length")
    if not row["BillingPeriodStart"] < row["BillingPeriodEnd"]:
        say("the billing period has no length")
    metered = row["PricingQuantity"] != ""
    if row["ChargeCategory"] != "Usage" and (metered or row["ConsumedQuantity"] != ""):
        say("quantities are for usage alone")
    for quantity, unit in (("PricingQuantity", "PricingUnit"), ("ConsumedQuantity", "ConsumedUnit")):
        if (row[quantity] == "") != (row[unit] == ""):
            say(f"{quantity} and {unit} are not null together")
        if row[unit] != "" and not UNIT.match(row[unit]):
            say(f"{unit} is {row[unit]!r}")
    if row["SkuPriceDetails"] != "":
        for key in json.loads(row["SkuPriceDetails"]):
            if not key.startswith("x_") and key not in ("GpuCount", "CoreCount", "InstanceType"):
                say(f"SkuPriceDetails has {key}")
    if metered:
        if not (row["BillingPeriodStart"] <= row["ChargePeriodStart"] and row["ChargePeriodEnd"] <= row["BillingPeriodEnd"]):
            say("the charge period is not in the billing period")
        quantity, consumed = Decimal(row["PricingQuantity"]), Decimal(row["ConsumedQuantity"])
        if abs(quantity - consumed / 3600) > TOLERANCE:
            say(f"PricingQuantity {quantity} is not ConsumedQuantity {consumed} in hours")
        for price, cost in (("ListUnitPrice", "ListCost"), ("ContractedUnitPrice", "ContractedCost")):
            if row[price] == "":
                if Decimal(row[cost]) != 0:
                    say(f"{cost} without {price}")
                continue
            # The price of a seventh of a GPU has no last digit: its ninth decimal is rounded, the cost is exact.
            exact = Decimal(row[price]) * consumed / 3600
            if abs(exact - Decimal(row[cost])) > TOLERANCE / 2 * (1 + consumed / 3600):
                say(f"{cost} {row[cost]} is not {price} {row[price]} x PricingQuantity {quantity}")
    if len({row[name] for name in ("BilledCost", "ContractedCost", "EffectiveCost", "ListCost")}) != 1:
        say("BilledCost, ContractedCost, EffectiveCost and ListCost differ, and there are no discounts")
    if row["x_Open"] == "true" and row["InvoiceId"] != "":
        say("an open charge is on an invoice")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("file")
    parser.add_argument("--total")
    args = parser.parse_args()
    problems = []
    with open(args.file, newline="", encoding="utf-8") as file:
        reader = csv.DictReader(file, strict=True)
        names = reader.fieldnames or []
        for name in MANDATORY + CONDITIONAL + RECOMMENDED:
            if name not in names:
                problems.append(f"column {name} is missing")
        for name in names:
            if not name.startswith("x_") and name not in MANDATORY + CONDITIONAL + RECOMMENDED:
                problems.append(f"column {name} is not of FOCUS, and does not begin with x_")
        if len(set(names)) != len(names):
            problems.append("a column stands twice")
        if problems:
            sys.exit("\n".join(problems))
        total, ids = Decimal(0), set()
        invoices, adjustments = collections.defaultdict(Decimal), collections.Counter()
        currency_of = {}
        for number, row in enumerate(reader, 2):
            check_row(row, lambda what, at=number: problems.append(f"row {at}: {what}"))
            if problems:
                break
            cost = Decimal(row["BilledCost"])
            total += cost
            if row["InvoiceId"]:
                invoices[row["InvoiceId"]] += cost
                currency_of.setdefault(row["InvoiceId"], row["BillingCurrency"])
                if currency_of[row["InvoiceId"]] != row["BillingCurrency"]:
                    problems.append(f"row {number}: an invoice in two currencies")
                if row["ChargeCategory"] == "Adjustment":
                    adjustments[row["InvoiceId"]] += 1
            if row["x_ChargeId"] in ids:
                problems.append(f"row {number}: x_ChargeId stands twice")
            ids.add(row["x_ChargeId"])
    if problems:
        sys.exit("\n".join(problems[:20]))
    for invoice, amount in invoices.items():
        coin = Decimal(1) if currency_of[invoice] == "JPY" else Decimal("0.01")
        if amount % coin != 0:
            problems.append(f"the rows of invoice {invoice} sum to {amount}, which nobody can pay")
        if adjustments[invoice] > 1:
            problems.append(f"invoice {invoice} was adjusted {adjustments[invoice]} times")
    if args.total is not None and not problems and Decimal(args.total) != total:
        problems.append(f"BilledCost sums to {total}, and the report's sum is {args.total}")
    if problems:
        sys.exit("\n".join(problems[:20]))
    print(f"{len(ids)} rows, {len(invoices)} invoices, sum {total}")


main()
