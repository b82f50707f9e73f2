#!/usr/bin/env python3
"""Writes tables as people have them, for the recipes and the tests: make_tables.py DIRECTORY

passengers.csv  classes: semicolons, decimal commas, empty cells, NA, words, dates, Latin-1
houses.csv      values: semicolons, decimal commas, points between thousands, empty cells
"""
import math
import os
import random
import sys


def decimal(number, digits=2):
    return f"{number:.{digits}f}".replace(".", ",")


def grouped(number):
    return f"{number:,.2f}".replace(",", " ").replace(".", ",").replace(" ", ".")


def passengers(draw, count=400):
    lines = ["Id;Survived;Class;Name;Sex;Age;Fare;Port;Boarded"]
    for i in range(count):
        ticket = draw.choice([1, 2, 3])
        sex = draw.choice(["male", "female"])
        age = draw.uniform(1, 80)
        fare = 90 / ticket * draw.uniform(0.5, 1.5)
        score = (1.8 if sex == "female" else -1.2) + 0.8 * (2 - ticket) - 0.02 * (age - 30)
        survived = "yes" if draw.random() < 1 / (1 + math.exp(-2.5 * score)) else "no"
        shown_age = draw.choice(["", "NA"]) if draw.random() < 0.2 else decimal(age, 1)
        port = "" if draw.random() < 0.02 else draw.choice(["Cherbourg", "Köln", "Southampton"])
        day = draw.randint(1, 28)
        lines.append(f'{i + 1};{survived};{ticket};"Smith; ""J."" {i}";{sex};{shown_age};'
                     f"{decimal(fare)};{port};1912-04-{day:02d}")
    return "\r\n".join(lines) + "\r\n"


def houses(draw, count=400):
    lines = ["area;rooms;garden;district;price"]
    for _ in range(count):
        area = draw.uniform(40, 200)
        rooms = max(1, round(area / 30 + draw.uniform(-1, 1)))
        garden = draw.choice(["yes", "no"])
        district = draw.choice(["north", "south", "west"])
        price = area * {"north": 3000, "south": 2000, "west": 2500}[district]
        price = price * (1.1 if garden == "yes" else 1) * draw.uniform(0.95, 1.05)
        shown_rooms = "" if draw.random() < 0.1 else rooms
        lines.append(f"{decimal(area)};{shown_rooms};{garden};{district};{grouped(price)}")
    return "\n".join(lines) + "\n"


def main():
    directory = sys.argv[1]
    os.makedirs(directory, exist_ok=True)
    draw = random.Random(1)
    with open(os.path.join(directory, "passengers.csv"), "w", encoding="latin-1", newline="") as file:
        file.write(passengers(draw))
    with open(os.path.join(directory, "houses.csv"), "w", encoding="utf-8", newline="") as file:
        file.write(houses(draw))


if __name__ == "__main__":
    main()
