-- A small wholesaler after the TPC-C benchmark: 4 warehouses with 10 districts each, 30 customers in
-- each district, 1000 items. `mariadb < tables.sql` makes it.
CREATE DATABASE shop;
USE shop;

CREATE TABLE warehouse (w INT PRIMARY KEY, tax DECIMAL(4,4), ytd DECIMAL(14,2));
INSERT INTO warehouse SELECT seq, 0.05, 0 FROM seq_1_to_4;

CREATE TABLE district (
    w INT, d INT, tax DECIMAL(4,4), ytd DECIMAL(14,2), next_order INT, PRIMARY KEY (w, d)
);
INSERT INTO district SELECT w, seq, 0.05, 0, 31 FROM warehouse JOIN seq_1_to_10;

CREATE TABLE customer (
    w INT, d INT, c INT, name CHAR(16), balance DECIMAL(12,2), data CHAR(200), PRIMARY KEY (w, d, c)
);
INSERT INTO customer
    SELECT w, d, seq, CONCAT('customer ', seq), -10, REPEAT('x', 200) FROM district
    JOIN seq_1_to_30;

CREATE TABLE item (i INT PRIMARY KEY, name CHAR(24), price DECIMAL(5,2));
INSERT INTO item SELECT seq, CONCAT('item ', seq), 1 + seq % 99 FROM seq_1_to_1000;

CREATE TABLE stock (w INT, i INT, quantity INT, data CHAR(50), PRIMARY KEY (w, i));
INSERT INTO stock SELECT w, i, 10 + i * w % 91, REPEAT('x', 50) FROM warehouse JOIN item;

-- Each customer has one order of ten lines; the newest ten of a district are undelivered.
CREATE TABLE orders (
    w INT, d INT, o INT, c INT, carrier INT, line_count INT,
    PRIMARY KEY (w, d, o), KEY (w, d, c, o)
);
INSERT INTO orders SELECT w, d, c, c, IF(c > 20, NULL, 1), 10 FROM customer;

CREATE TABLE new_order (w INT, d INT, o INT, PRIMARY KEY (w, d, o));
INSERT INTO new_order SELECT w, d, o FROM orders WHERE carrier IS NULL;

CREATE TABLE order_line (
    w INT, d INT, o INT, number INT, i INT, quantity INT, amount DECIMAL(8,2),
    PRIMARY KEY (w, d, o, number)
);
INSERT INTO order_line
    SELECT w, d, o, seq, 1 + (o * 7 + seq * 131) % 1000, 5, 50 FROM orders JOIN seq_1_to_10;

CREATE TABLE history (
    number BIGINT AUTO_INCREMENT PRIMARY KEY, w INT, d INT, c INT, amount DECIMAL(6,2)
);

CREATE FUNCTION attune_hint RETURNS INTEGER SONAME 'attune_hint.so';
