def main(rows):
    return sorted(rows, key=lambda row: -row["score"])
