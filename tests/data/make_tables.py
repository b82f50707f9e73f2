#!/usr/bin/env python3
"""Writes tables as people have them, for the recipes and the tests: make_tables.py DIRECTORY

passengers.csv  classes: semicolons, decimal commas, empty cells, NA, words, dates, Latin-1
houses.csv      values: semicolons, decimal commas, points between thousands, empty cells
photos/         pictures in folders by what they show: stripes that lie or stand
"""
import math
import os
import random
import struct
import sys
import zlib


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


def png(rows):
    """A PNG file of rows of (red, green, blue)."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    pixels = b"".join(b"\0" + b"".join(bytes(pixel) for pixel in row) for row in rows)
    size = struct.pack(">IIBBBBB", len(rows[0]), len(rows), 8, 2, 0, 0, 0)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", size) + chunk(b"IDAT", zlib.compress(pixels))
            + chunk(b"IEND", b""))


def photo(draw, is_standing):
    height, width = draw.randint(20, 40), draw.randint(20, 40)
    period, phase = draw.uniform(4, 8), draw.uniform(0, 6)
    colour = [draw.uniform(0.3, 1) for _ in range(3)]

    def pixel(y, x):
        wave = math.sin(2 * math.pi * (x if is_standing else y) / period + phase)
        return [max(0, min(255, round(share * (128 + 100 * wave + draw.gauss(0, 10))))) for share in colour]
    return png([[pixel(y, x) for x in range(width)] for y in range(height)])


def photos(draw, directory, count=40):
    for name, is_standing in (("lying", False), ("standing", True)):
        os.makedirs(os.path.join(directory, name), exist_ok=True)
        for i in range(count):
            with open(os.path.join(directory, name, f"{i:02d}.png"), "wb") as file:
                file.write(photo(draw, is_standing))


def main():
    directory = sys.argv[1]
    os.makedirs(directory, exist_ok=True)
    draw = random.Random(1)
    with open(os.path.join(directory, "passengers.csv"), "w", encoding="latin-1", newline="") as file:
        file.write(passengers(draw))
    with open(os.path.join(directory, "houses.csv"), "w", encoding="utf-8", newline="") as file:
        file.write(houses(draw))
    photos(draw, os.path.join(directory, "photos"))


if __name__ == "__main__":
    main()
